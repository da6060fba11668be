-- A file that ends the process that converts it is not tried for ever.

ALTER TABLE job ADD COLUMN deaths int NOT NULL DEFAULT 0; -- workers that died while a converter had begun on it

DROP FUNCTION claim_job(uuid, uuid, interval, text);

-- Give a job to a worker in a new attempt, or say why not:
--   claimed   the worker is to run this attempt, whose output nobody else may have stored under `output`
--   held      another process that is alive has it
--   ended     there is nothing left to do
--   given up  the last of `most_deaths` workers has died with it: it failed just now, for `reason`
-- `is_suspect`: a worker has died with it, whether or not the job had to do with that; what only waited there is counted no
-- death. The commit is synchronous, and so the admission that it builds on is on the disk as well.
CREATE FUNCTION claim_job(
    of_job uuid, on_worker uuid, lease interval, new_name text, most_deaths int, reason text,
    OUT verdict text, OUT claimed_attempt int, OUT output text, OUT input text, OUT is_suspect boolean
) LANGUAGE plpgsql AS $$
DECLARE
    former job;
    died int;
BEGIN
    SELECT * INTO former FROM job j WHERE j.id = of_job AND j.completed_at IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        verdict := 'ended';
        RETURN;
    ELSIF is_alive(former.worker_id, lease) THEN
        verdict := 'held';
        RETURN;
    END IF;
    died := former.deaths + (former.worker_id IS NOT NULL AND former.status = 'Processing')::int;
    is_suspect := died > 0 OR former.worker_id IS NOT NULL;
    IF died >= most_deaths THEN
        PERFORM release_job(of_job, former.attempt, reason, '{}', NULL, NULL, NULL, former.object_key, false);
        verdict := 'given up';
        RETURN;
    END IF;
    UPDATE job j
       SET attempt = j.attempt + 1, worker_id = on_worker, status = 'Pending', stage = NULL, deaths = died,
           object_key = CASE WHEN j.attempt = 1 THEN j.object_key -- by which nothing was stored
                             ELSE regexp_replace(j.object_key, '[^/]*$', new_name) END
     WHERE j.id = of_job
 RETURNING j.attempt, j.object_key, j.input_key INTO claimed_attempt, output, input;
    verdict := 'claimed';
END $$;
