-- name: admit
-- Reserve and insert the jobs of one account, or return why not.
SELECT * FROM admit_uploads($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: settle
-- Complete jobs and write their ledger rows; a job is skipped unless it is open in this attempt.
-- The balance is stored with each job, because it is part of its response. Also returns which of the jobs in $2 are open in the
-- attempts in $3, which are admissions or claims of the process $4; if anything was settled, these are on disk, too. A skipped job
-- may have been completed by an earlier run of this statement, on this server only, because a standby did not confirm the commit.
-- The message, which is never read, makes this commit wait for the standby, too. The retention begins at $5 at the earliest, lest
-- a clock that is behind for a moment end it.
WITH given AS (
    SELECT *
      FROM jsonb_to_recordset($1::jsonb) AS settlement(
               job_id uuid, attempt int, retention_hours int, processing_time_ms bigint, feature_count bigint,
               geometry_type text, output_size_bytes bigint, download_name text, media_type text, details jsonb)
     LIMIT jsonb_array_length($1) -- all of them; the planner expects few, and looks each up instead of reading tables whole
), done AS (
    UPDATE job j
       SET status = 'Completed', completed_at = service_time(),
           expires_at = greatest(service_time(), $5::timestamptz) + make_interval(hours => t.retention_hours),
           processing_time_ms = t.processing_time_ms, feature_count = t.feature_count, geometry_type = t.geometry_type,
           output_size_bytes = t.output_size_bytes, download_name = t.download_name, media_type = t.media_type,
           details = t.details || jsonb_strip_nulls(jsonb_build_object(
               'remaining_conversions', b.remaining_conversions, 'remaining_bytes', b.remaining_bytes,
               'wallet_cents', b.wallet_cents))
      FROM given t CROSS JOIN balance b
     WHERE j.id = t.job_id AND j.attempt = t.attempt AND j.completed_at IS NULL AND b.payer_id = j.payer_id
 RETURNING j.id, j.account_id, j.payer_id, j.period, j.input_size_bytes, j.price_cents, j.completed_at, j.expires_at,
           b.period AS used_in, b.used_conversions, b.used_bytes, b.remaining_conversions, b.remaining_bytes, b.wallet_cents
), entry AS (
    INSERT INTO ledger (job_id, account_id, payer_id, period, conversions, bytes, cents, settled_at)
    SELECT id, account_id, payer_id, coalesce(period, service_month()),
           (price_cents IS NULL)::int, input_size_bytes, coalesce(price_cents, 0), completed_at
      FROM done
)
SELECT id, true AS settled, completed_at, expires_at, used_in AS period, used_conversions, used_bytes,
       remaining_conversions, remaining_bytes, wallet_cents
  FROM done
UNION ALL
SELECT id, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM (SELECT unnest($2::uuid[]) AS id, unnest($3::int[]) AS attempt LIMIT cardinality($2)) asked JOIN job USING (id, attempt)
 WHERE completed_at IS NULL AND (attempt = 1 OR worker_id = $4::uuid)
UNION ALL
SELECT job_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
  FROM given
 WHERE job_id NOT IN (SELECT id FROM done) AND pg_logical_emit_message(true, 'geomill', '') IS NULL;

-- name: flush_attempts
-- Return which of these jobs are open in these attempts, which are admissions or claims of the process $3, once they are on
-- disk. Only the commit of a transaction that has written something waits for the disk; hence the message, which is never read.
SELECT id, pg_logical_emit_message(true, 'geomill', '')
  FROM (SELECT unnest($1::uuid[]) AS id, unnest($2::int[]) AS attempt LIMIT cardinality($1)) asked JOIN job USING (id, attempt)
 WHERE completed_at IS NULL AND (attempt = 1 OR worker_id = $3::uuid);

-- name: release
-- Fail a job that is open in this attempt and release its reservation; see the function. With $10, it is spared if it has been
-- handed over: the lock makes sure of that until the end.
SELECT release_job($1, $2, $3, $4, $5, $6, $7, $8, $9)
  FROM (SELECT FROM job WHERE id = $1 AND NOT ($10 AND handover IS NOT NULL) FOR UPDATE) AS locked;

-- name: balance
-- The balance of an account's payer this month.
SELECT b.* FROM account a JOIN balance b ON b.payer_id = a.payer_id WHERE a.id = $1;

-- name: publish_plan
-- Make the database's plan equal to the table in the code.
SELECT publish_plan($1);

-- name: reservations
-- How many jobs hold a reservation.
SELECT count(*) FROM job WHERE status IN ('Pending', 'Processing');
