-- name: usage_differences
-- Months in which a payer's counters are not what its ledger and its open jobs add up to.
WITH derived AS (
    SELECT payer_id, period, sum(conversions)::bigint AS conversions, sum(bytes)::bigint AS bytes
      FROM (SELECT payer_id, period, conversions, bytes FROM ledger WHERE conversions > 0
            UNION ALL
            SELECT payer_id, period, 1, input_size_bytes FROM job
             WHERE status IN ('Pending', 'Processing') AND period IS NOT NULL) AS entry
     GROUP BY payer_id, period
)
SELECT coalesce(d.payer_id, u.payer_id) AS payer_id, coalesce(d.period, u.period) AS period,
       coalesce(u.conversions, 0) AS conversions, coalesce(u.bytes, 0) AS bytes,
       coalesce(d.conversions, 0) AS derived_conversions, coalesce(d.bytes, 0) AS derived_bytes
  FROM derived d FULL JOIN usage u ON u.payer_id = d.payer_id AND u.period = d.period
 WHERE (coalesce(u.conversions, 0), coalesce(u.bytes, 0)) <> (coalesce(d.conversions, 0), coalesce(d.bytes, 0));

-- name: wallet_differences
-- Wallets whose balance is not their credit less what the ledger and their open jobs took.
WITH derived AS (
    SELECT payer_id, sum(cents)::bigint AS cents
      FROM (SELECT payer_id, cents FROM wallet_credit
            UNION ALL
            SELECT payer_id, -cents FROM ledger WHERE cents > 0
            UNION ALL
            SELECT payer_id, -price_cents FROM job
             WHERE status IN ('Pending', 'Processing') AND price_cents IS NOT NULL) AS entry
     GROUP BY payer_id
)
SELECT p.id AS payer_id, p.wallet_cents, coalesce(d.cents, 0) AS derived_cents
  FROM payer p LEFT JOIN derived d ON d.payer_id = p.id
 WHERE p.wallet_cents IS NOT NULL AND p.wallet_cents <> coalesce(d.cents, 0);

-- name: ledger_differences
-- Jobs that succeeded and were not charged, or were charged and did not succeed.
SELECT coalesce(j.id, l.job_id) AS job_id, j.status, l.job_id IS NOT NULL AS charged
  FROM job j FULL JOIN ledger l ON l.job_id = j.id
 WHERE (l.job_id IS NOT NULL) <> coalesce(j.status IN ('Completed', 'Expired'), false);

-- name: known_keys
-- Which of these outputs a job knows of.
SELECT object_key FROM job WHERE object_key = ANY($1);

-- name: outputs
-- Every output that was there at the given time and to which a link may lead until an hour after it.
SELECT id, object_key FROM job
 WHERE status = 'Completed' AND completed_at < $1 AND expires_at > $1 + interval '1 hour';
