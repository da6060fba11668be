-- It is not later than $3 in any of these statements.

-- name: jobs
-- Delete some jobs that ended more than a number of days ago.
SELECT prune_jobs(least(service_time(), $3) - make_interval(days => $1), $2);

-- name: charges
-- Delete some ledger rows of months more than a number before the current one.
SELECT prune_ledger((date_trunc('month', least(service_time(), $3) AT TIME ZONE 'UTC') - make_interval(months => $1))::date, $2);

-- name: months
-- Delete the counters of some closed months more than a number before the current one.
SELECT prune_usage((date_trunc('month', least(service_time(), $3) AT TIME ZONE 'UTC') - make_interval(months => $1))::date, $2);

-- name: revoked_keys
-- Delete some keys that were revoked more than a number of days ago.
WITH gone AS (
    DELETE FROM api_key WHERE id IN (
        SELECT id FROM api_key WHERE revoked_at < least(service_time(), $3) - make_interval(days => $1) LIMIT $2)
    RETURNING id
)
SELECT count(*) FROM gone;
