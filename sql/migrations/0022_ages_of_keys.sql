-- Keys that were made while the clock of the database was behind, as for a moment after its host was resumed. They are not older
-- than the process knows them to be, which would otherwise charge a repeated request again once the clock is right.
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
        SELECT k.fingerprint, k.job_ids, k.created_at, k.held_until INTO held
          FROM idempotency_key k WHERE k.account_id = of_account AND k.key = of_key FOR UPDATE;
        EXIT WHEN FOUND; -- else it was given back in between
    END LOOP;
    IF held.created_at <= least(service_time(), no_later) - interval '24 hours' THEN
        held.created_at := greatest(service_time(), no_later);
        jobs := new_jobs;
    ELSIF held.fingerprint <> of_request THEN
        verdict := 'reused';
        RETURN;
    ELSE
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
