-- contract: no release has called the function that this one replaces
-- Claims of several jobs in one statement, and exact blame: a job runs alone only once two workers have died after a
-- converter had begun on it.
DROP FUNCTION claim_job(uuid, uuid, uuid, uuid, interval, text, int, text);

ALTER TABLE server
    ADD COLUMN converters int,                                -- that take jobs of any gateway; null without any
    ADD COLUMN hands_over boolean NOT NULL DEFAULT false;     -- whether it is such a gateway

-- Give each job to a worker in a new attempt, or say why not:
--   claimed   the worker is to run this attempt, whose output nobody else may have stored under `output`
--   held      another process that is alive has it
--   given up  the last of `most_deaths` workers has died with it: it failed just now, for `reason`
-- A job without a row has ended, or is none of this account and gateway.
-- `is_doubtful`: a worker has died with it, whether or not the job had to do with that; what only waited there is counted no
-- death. `is_suspect`: one more death is the last. The commit is synchronous, and so the admission that it builds on is on
-- the disk as well.
CREATE FUNCTION claim_jobs(
    of_jobs uuid[], of_accounts uuid[], of_gateways uuid[], new_names text[], on_worker uuid, lease interval,
    most_deaths int, reason text
) RETURNS TABLE (job_id uuid, verdict text, attempt int, output text, input text, is_doubtful boolean, is_suspect boolean)
LANGUAGE plpgsql AS $$
BEGIN
    -- In one order, so that two workers do not wait for each other; what they changed meanwhile is seen below.
    PERFORM FROM job j WHERE j.id = ANY(of_jobs) AND j.completed_at IS NULL ORDER BY j.id FOR UPDATE;
    RETURN QUERY
    WITH former AS (
        SELECT j.id, j.attempt, j.object_key, g.new_name, is_alive(j.worker_id, lease) AS is_held,
               j.deaths > 0 OR j.worker_id IS NOT NULL AS is_doubtful,
               j.deaths + (j.worker_id IS NOT NULL AND j.status = 'Processing')::int AS deaths
          FROM (SELECT * FROM unnest(of_jobs, of_accounts, of_gateways, new_names)
                 LIMIT cardinality(of_jobs)) AS g(id, account_id, server_id, new_name)
          JOIN job j ON j.id = g.id AND j.account_id = g.account_id AND j.server_id = g.server_id
         WHERE j.completed_at IS NULL
    ), claimed AS (
        UPDATE job j
           SET admitted_key = CASE WHEN j.attempt > 1 THEN coalesce(j.admitted_key, j.object_key) END,
               attempt = j.attempt + 1, worker_id = on_worker, status = 'Pending', stage = NULL, deaths = f.deaths,
               object_key = CASE WHEN j.attempt = 1 THEN j.object_key -- by which nothing was stored
                                 ELSE regexp_replace(j.object_key, '[^/]*$', f.new_name) END
          FROM former f
         WHERE j.id = f.id AND NOT f.is_held AND f.deaths < most_deaths
     RETURNING j.id, j.attempt, j.object_key, j.input_key, f.is_doubtful, f.deaths >= most_deaths - 1 AS is_suspect
    )
    SELECT c.id, 'claimed', c.attempt, c.object_key, c.input_key, c.is_doubtful, c.is_suspect FROM claimed c
    UNION ALL
    SELECT f.id, CASE WHEN f.is_held THEN 'held'
                      WHEN release_job(f.id, f.attempt, reason, '{}', NULL, NULL, NULL, f.object_key, false) IS NULL THEN 'ended'
                      ELSE 'given up' END,
           NULL, NULL, NULL, f.is_doubtful, false
      FROM former f WHERE f.is_held OR f.deaths >= most_deaths;
END $$;
