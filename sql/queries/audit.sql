-- name: usage_differences
-- Among the next months, by payer and month: counters that differ from the sum of ledger, pruned rows and open jobs. Always
-- returns the last month examined, and whether there may be more.
WITH page AS (
    SELECT payer_id, period, conversions, bytes FROM usage
     WHERE (payer_id, period) > ($1, $2) ORDER BY payer_id, period LIMIT $3
)
SELECT u.payer_id, u.period, u.conversions, u.bytes, d.conversions AS derived_conversions, d.bytes AS derived_bytes,
       (u.conversions, u.bytes) <> (d.conversions, d.bytes) AS differs, count(*) OVER () = $3 AS more
  FROM page u CROSS JOIN LATERAL (
    SELECT coalesce(sum(conversions), 0)::bigint AS conversions, coalesce(sum(bytes), 0)::bigint AS bytes
      FROM (SELECT l.conversions, l.bytes FROM ledger l
             WHERE l.payer_id = u.payer_id AND l.period = u.period AND l.conversions > 0
            UNION ALL
            SELECT s.conversions, s.bytes FROM ledger_sum s WHERE s.payer_id = u.payer_id AND s.period = u.period
            UNION ALL
            SELECT 1, j.input_size_bytes FROM job j
             WHERE j.status IN ('Pending', 'Processing') AND j.payer_id = u.payer_id AND j.period = u.period) AS entry
  ) AS d
 ORDER BY u.payer_id, u.period;

-- name: uncounted
-- Open jobs, and sums of pruned ledger rows, of months without a counter.
SELECT DISTINCT j.payer_id, j.period FROM job j
 WHERE j.status IN ('Pending', 'Processing') AND j.period IS NOT NULL
   AND NOT EXISTS (SELECT FROM usage u WHERE u.payer_id = j.payer_id AND u.period = j.period)
UNION
SELECT s.payer_id, s.period FROM ledger_sum s
 WHERE s.period > '-infinity' AND s.conversions > 0
   AND NOT EXISTS (SELECT FROM usage u WHERE u.payer_id = s.payer_id AND u.period = s.period);

-- name: wallet_differences
-- Among the next payers in order: wallets whose balance differs from their credit minus ledger, pruned rows and open jobs.
-- Always returns the last payer examined, and whether there may be more.
WITH page AS (
    SELECT id, wallet_cents FROM payer WHERE id > $1 AND wallet_cents IS NOT NULL ORDER BY id LIMIT $2
)
SELECT p.id AS payer_id, p.wallet_cents, d.cents AS derived_cents, p.wallet_cents <> d.cents AS differs,
       count(*) OVER () = $2 AS more
  FROM page p CROSS JOIN LATERAL (
    SELECT coalesce(sum(cents), 0)::bigint AS cents
      FROM (SELECT c.cents FROM wallet_credit c WHERE c.payer_id = p.id
            UNION ALL
            SELECT -l.cents FROM ledger l WHERE l.payer_id = p.id
            UNION ALL
            SELECT -s.cents FROM ledger_sum s WHERE s.payer_id = p.id
            UNION ALL
            SELECT -j.price_cents FROM job j
             WHERE j.status IN ('Pending', 'Processing') AND j.payer_id = p.id AND j.price_cents IS NOT NULL) AS entry
  ) AS d
 ORDER BY p.id;

-- name: job_differences
-- Among the next jobs in order: those that succeeded and were not charged, or were charged and did not succeed. Always
-- returns the last job examined, and whether there may be more.
WITH page AS (SELECT id, status FROM job WHERE id > $1 ORDER BY id LIMIT $2),
last AS (SELECT id FROM page ORDER BY id DESC LIMIT 1)
SELECT p.id AS job_id, p.status, l.job_id IS NOT NULL AS charged,
       (l.job_id IS NOT NULL) <> (p.status IN ('Completed', 'Expired')) AS differs,
       (SELECT count(*) FROM page) = $2 AS more
  FROM page p LEFT JOIN ledger l ON l.job_id = p.id
 WHERE (l.job_id IS NOT NULL) <> (p.status IN ('Completed', 'Expired')) OR p.id = (SELECT id FROM last)
 ORDER BY p.id;

-- name: charge_differences
-- Among the next ledger rows in order: those without their job though it was not pruned, and those of a month without a
-- counter. Always returns the last row examined, and whether there may be more.
WITH page AS (
    SELECT job_id, payer_id, period, conversions, job_pruned FROM ledger WHERE job_id > $1 ORDER BY job_id LIMIT $2
), last AS (SELECT job_id FROM page ORDER BY job_id DESC LIMIT 1), seen AS (
    SELECT l.job_id, l.payer_id, l.period, NOT l.job_pruned AND j.id IS NULL AS lacks_job,
           l.conversions > 0 AND u.payer_id IS NULL AS lacks_counter
      FROM page l LEFT JOIN job j ON j.id = l.job_id
      LEFT JOIN usage u ON u.payer_id = l.payer_id AND u.period = l.period
)
SELECT seen.*, lacks_job OR lacks_counter AS differs, (SELECT count(*) FROM page) = $2 AS more
  FROM seen WHERE lacks_job OR lacks_counter OR job_id = (SELECT job_id FROM last) ORDER BY job_id;

-- name: time
-- The current time of the service.
SELECT service_time();

-- name: known_keys
-- Those of these object keys that a job records.
SELECT object_key FROM job WHERE object_key = ANY($1)
UNION ALL
SELECT preview_key FROM job WHERE preview_key = ANY($1)
UNION ALL
SELECT input_key FROM job WHERE input_key = ANY($1);

-- name: outputs
-- The next outputs, in the order of their end, that were there at the given time.
SELECT id, object_key, expires_at FROM job
 WHERE status = 'Completed' AND completed_at < $1 AND (expires_at, id) > ($2, $3)
 ORDER BY expires_at, id LIMIT $4;

-- name: still_completed
-- Which of these jobs still have an output to which a link may lead.
SELECT id FROM job WHERE id = ANY($1) AND status = 'Completed';

-- name: inputs
-- The next open jobs, in their order, that were handed over and whose input is in the store.
SELECT id, input_key FROM job
 WHERE completed_at IS NULL AND handover IS NOT NULL AND input_key IS NOT NULL AND id > $1 ORDER BY id LIMIT $2;

-- name: known_jobs
-- Which of these jobs exist.
SELECT id FROM job WHERE id = ANY($1);

-- name: still_open
-- Which of these jobs have not ended.
SELECT id FROM job WHERE id = ANY($1) AND completed_at IS NULL;

-- name: expire_lost
-- Expire jobs whose outputs were lost early. The charges stay.
UPDATE job SET status = 'Expired', object_key = NULL WHERE id = ANY($1) AND status = 'Completed' RETURNING id;
