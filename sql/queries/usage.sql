-- name: by_day
-- What was charged on each day (UTC) to each account, from the first day up to and including the last; of one account if $3.
SELECT l.account_id, (l.settled_at AT TIME ZONE 'UTC')::date AS day, count(*)::int AS files,
       sum(l.conversions)::int AS conversions, sum(l.bytes)::bigint AS bytes, sum(l.cents)::bigint AS cents
  FROM ledger l
 WHERE l.settled_at >= $1::date::timestamp AT TIME ZONE 'UTC' AND l.settled_at < ($2::date + 1)::timestamp AT TIME ZONE 'UTC'
   AND ($3::uuid IS NULL OR l.account_id = $3)
 GROUP BY l.account_id, day ORDER BY day, l.account_id;

-- name: nearly_used
-- Record which payers have used at least $1 percent of an allowance this month; returns those that are new.
WITH nearly AS (
    SELECT u.payer_id, u.period, w.allowance, w.used, w.allowed
      FROM usage u JOIN payer p ON p.id = u.payer_id JOIN plan n ON n.id = p.plan_id
     CROSS JOIN LATERAL (VALUES ('conversions', u.conversions::bigint, n.monthly_conversions::bigint),
                                ('data', u.bytes, n.monthly_data_bytes)) AS w (allowance, used, allowed)
     WHERE u.period = service_month() AND w.used::numeric * 100 >= w.allowed::numeric * $1::int
), noted AS (
    INSERT INTO allowance_notice (payer_id, period, allowance, noticed_at)
    SELECT payer_id, period, allowance, service_time() FROM nearly
    ON CONFLICT DO NOTHING
    RETURNING payer_id, allowance
)
SELECT nearly.payer_id, nearly.allowance, nearly.used, nearly.allowed, p.account_id, p.organization_id
  FROM noted JOIN nearly USING (payer_id, allowance) JOIN payer p ON p.id = nearly.payer_id;
