-- Claims whose statements are planned once in a session. PostgreSQL expects ten ids in an array that it does not know yet, so that
-- with `= ANY` a new plan for each claim often seemed cheaper. And where no process has a job, none is looked for.
CREATE OR REPLACE FUNCTION claim_jobs(
    of_jobs uuid[], of_accounts uuid[], of_gateways uuid[], new_names text[], digests bytea[], seals bytea[],
    on_worker uuid, lease interval, most_deaths int, reason text
) RETURNS TABLE (
    job_id uuid, verdict text, attempt int, output text, input text, is_doubtful boolean, is_suspect boolean, secret text
)
LANGUAGE plpgsql AS $$
BEGIN
    -- In one order, so that two workers do not wait for each other; what they changed meanwhile is seen below.
    PERFORM FROM (SELECT unnest(of_jobs) AS id LIMIT cardinality(of_jobs)) asked JOIN job j USING (id)
      WHERE j.completed_at IS NULL ORDER BY j.id FOR UPDATE OF j;
    RETURN QUERY
    WITH former AS (
        SELECT j.id, j.attempt, j.object_key, g.new_name, s.secret,
               sha256(convert_to(s.secret, 'UTF8') || g.digest) <> g.seal IS TRUE AS is_forged,
               j.worker_id IS NOT NULL AND is_alive(j.worker_id, lease) AS is_held,
               j.deaths > 0 OR j.worker_id IS NOT NULL AS is_doubtful,
               j.deaths + (j.worker_id IS NOT NULL AND j.status = 'Processing')::int AS deaths
          FROM (SELECT * FROM unnest(of_jobs, of_accounts, of_gateways, new_names, digests, seals)
                 LIMIT cardinality(of_jobs)) AS g(id, account_id, server_id, new_name, digest, seal)
          JOIN job j ON j.id = g.id AND j.account_id = g.account_id AND j.server_id = g.server_id
         CROSS JOIN LATERAL (SELECT coalesce(j.admitted_key, j.object_key)) AS s(secret)
         WHERE j.completed_at IS NULL
    ), claimed AS (
        UPDATE job j
           SET admitted_key = CASE WHEN j.attempt > 1 THEN f.secret END,
               attempt = j.attempt + 1, worker_id = on_worker, status = 'Pending', stage = NULL, deaths = f.deaths,
               object_key = CASE WHEN j.attempt = 1 THEN j.object_key -- by which nothing was stored
                                 ELSE regexp_replace(j.object_key, '[^/]*$', f.new_name) END
          FROM former f
         WHERE j.id = f.id AND NOT f.is_forged AND NOT f.is_held AND f.deaths < most_deaths
     RETURNING j.id, j.attempt, j.object_key, j.input_key, f.is_doubtful, f.deaths >= most_deaths - 1 AS is_suspect, f.secret
    )
    SELECT c.id, 'claimed', c.attempt, c.object_key, c.input_key, c.is_doubtful, c.is_suspect, c.secret FROM claimed c
    UNION ALL
    SELECT f.id, CASE WHEN f.is_forged THEN 'forged'
                      WHEN f.is_held THEN 'held'
                      WHEN release_job(f.id, f.attempt, reason, '{}', NULL, NULL, NULL, f.object_key, false) IS NULL THEN 'ended'
                      ELSE 'given up' END,
           NULL, NULL, NULL, f.is_doubtful, false, NULL
      FROM former f WHERE f.is_forged OR f.is_held OR f.deaths >= most_deaths;
END $$;
