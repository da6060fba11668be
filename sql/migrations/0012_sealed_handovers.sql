-- contract: no release has called the function that this one replaces
-- What a gateway tells workers is sealed with the key that admission recorded for the output, which is random and never told.
-- Later attempts have other keys, so that one is kept.
ALTER TABLE job ADD COLUMN admitted_key text; -- null until an attempt has another key
DROP FUNCTION claim_job(uuid, uuid, uuid, uuid, interval, text, int, text);

-- As before; also returns the `secret` with which the handover must be sealed.
CREATE FUNCTION claim_job(
    of_job uuid, of_account uuid, of_gateway uuid, on_worker uuid, lease interval, new_name text, most_deaths int, reason text,
    OUT verdict text, OUT claimed_attempt int, OUT output text, OUT input text, OUT is_suspect boolean,
    OUT secret text
) LANGUAGE plpgsql AS $$
DECLARE
    former job;
    died int;
BEGIN
    SELECT * INTO former FROM job j
     WHERE j.id = of_job AND j.account_id = of_account AND j.server_id = of_gateway AND j.completed_at IS NULL FOR UPDATE;
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
       SET admitted_key = CASE WHEN j.attempt > 1 THEN coalesce(j.admitted_key, j.object_key) END,
           attempt = j.attempt + 1, worker_id = on_worker, status = 'Pending', stage = NULL, deaths = died,
           object_key = CASE WHEN j.attempt = 1 THEN j.object_key -- by which nothing was stored
                             ELSE regexp_replace(j.object_key, '[^/]*$', new_name) END
     WHERE j.id = of_job
 RETURNING j.attempt, j.object_key, j.input_key, coalesce(j.admitted_key, j.object_key)
      INTO claimed_attempt, output, input, secret;
    verdict := 'claimed';
END $$;
