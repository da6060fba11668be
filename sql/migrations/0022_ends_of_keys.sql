-- Keys that answer until they are deleted, which is judged by all clocks that a process knows. While each claim judged their age, a
-- repeated request was charged again if one process had heard a wrong time and another had not. A new key, or one that is taken over,
-- is as young as any clock of its process says: `no_later` is the latest of them.
CREATE OR REPLACE FUNCTION claim_key(
    of_account uuid, of_key text, of_request bytea, new_jobs uuid[], lease interval, interruption text, no_later timestamptz,
    OUT verdict text, OUT jobs uuid[]
) LANGUAGE plpgsql AS $$
DECLARE
    held record;
    has_all boolean;
    is_open boolean;
    lacks_any boolean;
BEGIN
    LOOP
        INSERT INTO idempotency_key (account_id, key, fingerprint, job_ids, created_at, held_until)
        VALUES (of_account, of_key, of_request, new_jobs, greatest(service_time(), no_later), service_time() + lease)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            verdict := 'taken';
            jobs := new_jobs;
            RETURN;
        END IF;
        SELECT k.fingerprint, k.job_ids, k.held_until INTO held
          FROM idempotency_key k WHERE k.account_id = of_account AND k.key = of_key FOR UPDATE;
        EXIT WHEN FOUND; -- else it was given back in between
    END LOOP;
    IF held.fingerprint <> of_request THEN
        verdict := 'reused';
        RETURN;
    END IF;
    PERFORM release_job(j.id, j.attempt, interruption, '{}', NULL, NULL, NULL, j.object_key, true)
       FROM job j WHERE j.id = ANY(held.job_ids) AND is_abandoned(j, lease);
    SELECT array_agg(CASE WHEN j.interrupted IS FALSE THEN f.earlier ELSE f.new END ORDER BY f.place),
           bool_and(coalesce(j.completed_at IS NOT NULL AND NOT j.interrupted, false)),
           bool_or(coalesce(j.completed_at IS NULL AND j.id IS NOT NULL, false)),
           bool_or(j.id IS NULL)
      INTO jobs, has_all, is_open, lacks_any
      FROM unnest(held.job_ids, new_jobs) WITH ORDINALITY AS f(earlier, new, place)
      LEFT JOIN job j ON j.id = f.earlier;
    IF has_all THEN
        verdict := 'answered';
        RETURN;
    ELSIF is_open OR (lacks_any AND held.held_until > service_time()) THEN
        -- If the clock was set back since, the claim begins now: otherwise nothing would end that of a dead process.
        UPDATE idempotency_key SET held_until = service_time() + lease
         WHERE account_id = of_account AND key = of_key AND held_until > service_time() + lease;
        verdict := 'in use';
        jobs := NULL;
        RETURN;
    END IF;
    UPDATE idempotency_key
       SET job_ids = jobs, created_at = greatest(created_at, service_time(), no_later), held_until = service_time() + lease
     WHERE account_id = of_account AND key = of_key;
    verdict := 'taken';
END $$;
