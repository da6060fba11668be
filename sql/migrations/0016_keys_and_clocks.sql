-- A key that is old by a clock that has just jumped is not forgotten: the process says what time it is by the clocks that it
-- knows. The function of this name without that is what the previous version calls.
-- Take a key for a request whose files would become `new_jobs`, or say why not:
--   taken     the request is to do the files whose new job is in `jobs`; the other jobs in there have their answer
--   answered  every job in `jobs` has
--   in use    an earlier request is still at it
--   reused    the earlier request was another one
-- The key's row is locked first and its jobs are looked at by later statements, which therefore see every admission
-- under the key; see admit_files for the other side.
CREATE FUNCTION claim_key(
    of_account uuid, of_key text, of_request bytea, new_jobs uuid[], lease interval, interruption text, no_later timestamptz,
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
    IF held.created_at <= least(service_time(), no_later) - interval '24 hours' THEN
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

CREATE OR REPLACE FUNCTION claim_key(
    of_account uuid, of_key text, of_request bytea, new_jobs uuid[], lease interval, interruption text,
    OUT verdict text, OUT jobs uuid[]
) LANGUAGE sql AS $$
    SELECT * FROM claim_key(of_account, of_key, of_request, new_jobs, lease, interruption, service_time());
$$;
