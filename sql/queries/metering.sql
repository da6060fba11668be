-- name: admit
-- Reserve and insert the job, or return why not.
SELECT * FROM admit_job($1, $2, $3, $4, $5, $6, $7, $8, $9, $10);

-- name: settle
-- Complete a job and write its ledger row; nothing happens unless the job is Processing in this very attempt.
-- What is left is kept with the job, since it is part of the answer.
WITH standing AS (
    SELECT p.plan_id, p.wallet_cents, n.monthly_conversions, n.monthly_data_bytes,
           coalesce(u.conversions, 0) AS used_conversions, coalesce(u.bytes, 0) AS used_bytes
      FROM job j JOIN payer p ON p.id = j.payer_id LEFT JOIN plan n ON n.id = p.plan_id
      LEFT JOIN usage u ON u.payer_id = p.id AND u.period = date_trunc('month', $3 AT TIME ZONE 'UTC')::date
     WHERE j.id = $1
), done AS (
    UPDATE job
       SET status = 'Completed', completed_at = $3, expires_at = $4, processing_time_ms = $5, feature_count = $6,
           geometry_type = $7, output_size_bytes = $8, object_key = $9, download_name = $10, media_type = $11,
           details = $12::jsonb || jsonb_strip_nulls(jsonb_build_object(
               'remaining_conversions',
               CASE WHEN s.plan_id IS NOT NULL THEN greatest(s.monthly_conversions - s.used_conversions, 0) END,
               'remaining_bytes',
               CASE WHEN s.plan_id IS NOT NULL THEN greatest(s.monthly_data_bytes - s.used_bytes, 0) END,
               'wallet_cents', s.wallet_cents))
      FROM standing s
     WHERE id = $1 AND status = 'Processing' AND attempt = $2
 RETURNING id, account_id, payer_id, period, input_size_bytes, price_cents
), entry AS (
    INSERT INTO ledger (job_id, account_id, payer_id, period, conversions, bytes, cents, settled_at)
    SELECT id, account_id, payer_id, coalesce(period, date_trunc('month', $3 AT TIME ZONE 'UTC')::date),
           (price_cents IS NULL)::int, input_size_bytes, coalesce(price_cents, 0), $3
      FROM done
)
SELECT s.* FROM done d CROSS JOIN standing s;

-- name: release
-- Fail a job and give back what it had reserved; nothing happens unless the job is open, in this attempt if one is named.
WITH failed AS (
    UPDATE job
       SET status = 'Failed', completed_at = $3, error_message = $4, details = $5, feature_count = $6,
           geometry_type = $7, processing_time_ms = $8, object_key = $9
     WHERE id = $1 AND status IN ('Pending', 'Processing') AND attempt = coalesce($2, attempt)
 RETURNING id, payer_id, period, input_size_bytes, price_cents
), allowance AS (
    UPDATE usage u SET conversions = u.conversions - 1, bytes = u.bytes - f.input_size_bytes
      FROM failed f WHERE u.payer_id = f.payer_id AND u.period = f.period
), wallet AS (
    UPDATE payer p SET wallet_cents = p.wallet_cents + f.price_cents
      FROM failed f WHERE p.id = f.payer_id AND p.wallet_cents IS NOT NULL AND f.price_cents IS NOT NULL
)
SELECT id FROM failed;

-- name: balance
-- What an account's payer has left this month.
SELECT p.plan_id, p.wallet_cents, n.monthly_conversions, n.monthly_data_bytes,
       coalesce(u.conversions, 0) AS used_conversions, coalesce(u.bytes, 0) AS used_bytes
  FROM account a JOIN payer p ON p.id = a.payer_id LEFT JOIN plan n ON n.id = p.plan_id
  LEFT JOIN usage u ON u.payer_id = p.id AND u.period = date_trunc('month', $2::timestamptz AT TIME ZONE 'UTC')::date
 WHERE a.id = $1;

-- name: publish_plan
-- Make the database's plan what the table in code says.
INSERT INTO plan (id, owner, monthly_conversions, monthly_data_bytes, max_file_bytes, retention_hours, storage_region_choice)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (id) DO UPDATE
   SET owner = excluded.owner, monthly_conversions = excluded.monthly_conversions,
       monthly_data_bytes = excluded.monthly_data_bytes, max_file_bytes = excluded.max_file_bytes,
       retention_hours = excluded.retention_hours, storage_region_choice = excluded.storage_region_choice;

-- name: reservations
-- How many jobs hold a reservation.
SELECT count(*) FROM job WHERE status IN ('Pending', 'Processing');
