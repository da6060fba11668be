-- Jobs that gateways hand over to workers on other hosts. The queue only brings them there: what is owed stands here.

ALTER TABLE job
    ADD COLUMN worker_id uuid,  -- the process that claimed this attempt, if another than the one that admitted the job
    ADD COLUMN input_key text,  -- of the input in the store: recorded before there is one, gone once it is removed
    ADD COLUMN handover  bytea, -- what workers are told; from then on, the job survives the process that admitted it
    ADD COLUMN deaths    int NOT NULL DEFAULT 0; -- workers that died while a converter had begun on it

-- Whether a process has sent a heartbeat within the lease.
CREATE FUNCTION is_alive(of_server uuid, lease interval) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM server WHERE id = of_server AND heartbeat_at >= service_time() - lease)
$$;

-- Whether nobody will end an open job: no living process works on it, and none will be told to.
CREATE FUNCTION is_abandoned(of_job job, lease interval) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT of_job.completed_at IS NULL AND of_job.handover IS NULL
       AND NOT is_alive(of_job.server_id, lease) AND NOT is_alive(of_job.worker_id, lease)
$$;

-- Give a job to a worker in a new attempt, or say why not:
--   claimed   the worker is to run this attempt, whose output nobody else may have stored under `output`
--   held      another process that is alive has it
--   ended     there is nothing left to do, or no job of this account and gateway
--   given up  the last of `most_deaths` workers has died with it: it failed just now, for `reason`
-- `is_suspect`: a worker has died with it, whether or not the job had to do with that; what only waited there is counted no
-- death. The commit is synchronous, and so the admission that it builds on is on the disk as well.
CREATE FUNCTION claim_job(
    of_job uuid, of_account uuid, of_gateway uuid, on_worker uuid, lease interval, new_name text, most_deaths int, reason text,
    OUT verdict text, OUT claimed_attempt int, OUT output text, OUT input text, OUT is_suspect boolean
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
       SET attempt = j.attempt + 1, worker_id = on_worker, status = 'Pending', stage = NULL, deaths = died,
           object_key = CASE WHEN j.attempt = 1 THEN j.object_key -- by which nothing was stored
                             ELSE regexp_replace(j.object_key, '[^/]*$', new_name) END
     WHERE j.id = of_job
 RETURNING j.attempt, j.object_key, j.input_key INTO claimed_attempt, output, input;
    verdict := 'claimed';
END $$;

-- As before, but a job that a worker has or will have is not abandoned.
CREATE OR REPLACE FUNCTION claim_key(
    of_account uuid, of_key text, of_request bytea, new_jobs uuid[], lease interval, interruption text,
    OUT verdict text, OUT jobs uuid[]
) LANGUAGE plpgsql AS $$
DECLARE
    held record;
    has_all boolean;
    is_open boolean;
BEGIN
    LOOP
        INSERT INTO idempotency_key (account_id, key, fingerprint, job_ids, created_at, held_until)
        VALUES (of_account, of_key, of_request, new_jobs, service_time(), service_time() + lease)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            verdict := 'taken';
            jobs := new_jobs;
            RETURN;
        END IF;
        SELECT k.fingerprint, k.job_ids, k.created_at, k.held_until INTO held
          FROM idempotency_key k WHERE k.account_id = of_account AND k.key = of_key FOR UPDATE;
        EXIT WHEN FOUND; -- else it was given back in between
    END LOOP;
    IF held.created_at <= service_time() - interval '24 hours' THEN
        held.created_at := service_time();
        jobs := new_jobs;
    ELSIF held.fingerprint <> of_request THEN
        verdict := 'reused';
        RETURN;
    ELSE
        PERFORM release_job(j.id, j.attempt, interruption, '{}', NULL, NULL, NULL, j.object_key, true)
           FROM job j WHERE j.id = ANY(held.job_ids) AND is_abandoned(j, lease);
        SELECT array_agg(CASE WHEN j.interrupted IS FALSE THEN f.earlier ELSE f.new END ORDER BY f.place),
               bool_and(coalesce(j.completed_at IS NOT NULL AND NOT j.interrupted, false)),
               bool_or(coalesce(j.completed_at IS NULL AND j.id IS NOT NULL, false))
          INTO jobs, has_all, is_open
          FROM unnest(held.job_ids, new_jobs) WITH ORDINALITY AS f(earlier, new, place)
          LEFT JOIN job j ON j.id = f.earlier;
        IF has_all THEN
            verdict := 'answered';
            RETURN;
        ELSIF is_open OR held.held_until > service_time() THEN
            verdict := 'in use';
            jobs := NULL;
            RETURN;
        END IF;
    END IF;
    UPDATE idempotency_key
       SET fingerprint = of_request, job_ids = jobs, created_at = held.created_at, held_until = service_time() + lease
     WHERE account_id = of_account AND key = of_key;
    verdict := 'taken';
END $$;

-- An input that was recorded and never handed over may still appear: the gateway may have been frozen while it stored.
-- So may the one of a job that is deleted before its input was removed.
CREATE FUNCTION note_late_input() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO late_object VALUES (OLD.input_key, service_time(), service_time()) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER job_gives_input_up AFTER UPDATE OF input_key ON job FOR EACH ROW
    WHEN (OLD.input_key IS NOT NULL AND NEW.input_key IS NULL AND OLD.handover IS NULL)
    EXECUTE FUNCTION note_late_input();
CREATE TRIGGER deleted_job_gives_input_up AFTER DELETE ON job FOR EACH ROW
    WHEN (OLD.input_key IS NOT NULL)
    EXECUTE FUNCTION note_late_input();
