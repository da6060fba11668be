-- Every change of a job or of an idempotency key is fenced in the statement that makes it, and whatever one process
-- decides about another is decided by the clock of this database.

-- The one clock for all hosts. A function, so that tests can move it; it is inlined.
CREATE FUNCTION service_time() RETURNS timestamptz LANGUAGE sql STABLE RETURN now();

-- A job that failed because the service was interrupted says nothing about its file: a repeat under its idempotency key
-- converts the file anew.
ALTER TABLE job ADD COLUMN interrupted boolean NOT NULL DEFAULT false;
ALTER TABLE job ADD CONSTRAINT only_failed_jobs_are_interrupted CHECK (NOT interrupted OR status = 'Failed');

-- A job as its owner sees it: past its retention it is Expired, swept or not.
CREATE VIEW job_record AS
SELECT id, account_id, attempt,
       CASE WHEN status = 'Completed' AND expires_at <= service_time() THEN 'Expired' ELSE status END AS status,
       original_file_name, input_format, output_format, input_size_bytes, created_at, completed_at, feature_count,
       geometry_type, processing_time_ms, output_size_bytes, object_key, download_name, media_type, expires_at,
       error_message, details
  FROM job;

-- A key is held by the request whose jobs it names: what is not named any more is admitted no more. Its process prolongs
-- held_until while it admits; after that an open job of a living process holds the key, or else nobody does.
-- Processes of the version before this one write no held_until and do not prolong it: for theirs the default has to do.
ALTER TABLE idempotency_key ADD COLUMN held_until timestamptz NOT NULL DEFAULT now() + interval '10 minutes';
ALTER TABLE idempotency_key ALTER COLUMN server_id DROP NOT NULL;

-- Fail a job that is open in this attempt and give back what it had reserved; NULL if it is not.
CREATE FUNCTION release_job(
    of_job uuid, of_attempt int, reason text, answer jsonb, features bigint, geometry text, milliseconds bigint,
    object_left text, was_interrupted boolean
) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    of_payer uuid;
    in_period date;
    size_bytes bigint;
    price bigint;
    ended_at timestamptz;
BEGIN
    UPDATE job
       SET status = 'Failed', completed_at = service_time(), error_message = reason, details = answer,
           feature_count = features, geometry_type = geometry, processing_time_ms = milliseconds,
           object_key = object_left, interrupted = was_interrupted
     WHERE id = of_job AND attempt = of_attempt AND completed_at IS NULL
 RETURNING payer_id, period, input_size_bytes, price_cents, completed_at
      INTO of_payer, in_period, size_bytes, price, ended_at;
    IF in_period IS NOT NULL THEN
        UPDATE usage SET conversions = conversions - 1, bytes = bytes - size_bytes
         WHERE payer_id = of_payer AND period = in_period;
    END IF;
    IF price IS NOT NULL THEN
        UPDATE payer SET wallet_cents = wallet_cents + price WHERE id = of_payer AND wallet_cents IS NOT NULL;
    END IF;
    RETURN ended_at;
END $$;

-- Take a key for a request whose files would become `new_jobs`, or say why not:
--   taken     the request is to do the files whose new job is in `jobs`; the other jobs in there have their answer
--   answered  every job in `jobs` has
--   in use    an earlier request is still at it
--   reused    the earlier request was another one
-- The key's row is locked first and its jobs are looked at by later statements, which therefore see every admission
-- under the key; see admit_files for the other side.
CREATE FUNCTION claim_key(
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
           FROM job j LEFT JOIN server s ON s.id = j.server_id
          WHERE j.id = ANY(held.job_ids) AND j.completed_at IS NULL
            AND (s.id IS NULL OR s.heartbeat_at < service_time() - lease);
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

-- Reserve a conversion for each of some files of one account, first come, first served, and insert the jobs of those that
-- fit, in one round trip. What is free is looked at without a lock and taken by one guarded change; where another process
-- took of it in between, look again. So the hot row is locked once for all files, for this statement's end and its
-- commit, which may be asynchronous: see docs/architecture.md, decision 1. `durable` is for callers that are promised a
-- job now. What each file found used is what `metering.limits` needs to name the first limit that refuses.
-- A file that comes under an idempotency key is admitted only while that key names its job; `lost` says whose does not.
-- The keys stay locked until this transaction ends, so that nobody takes one over in between.
CREATE FUNCTION admit_files(
    of_account uuid, on_server uuid, durable boolean, regions text[], new_jobs uuid[], file_names text[], inputs text[],
    outputs text[], sizes bigint[], prices bigint[], object_names text[], under_keys text[],
    OUT admitted boolean[], OUT lost boolean[], OUT found_conversions int[], OUT found_bytes bigint[],
    OUT found_cents bigint[], OUT may_convert boolean, OUT past_due boolean, OUT plan_id text,
    OUT max_file_bytes bigint, OUT monthly_conversions int, OUT monthly_data_bytes bigint, OUT retention_hours int,
    OUT folder text, OUT admitted_at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    of_payer uuid;
    in_period date;
    named_jobs uuid[];
    used_conversions int;
    used_bytes bigint;
    wallet_cents bigint;
    fits boolean;
    taken int;
    taken_bytes bigint;
    taken_cents bigint;
BEGIN
    IF NOT durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    admitted_at := service_time();
    in_period := date_trunc('month', admitted_at AT TIME ZONE 'UTC')::date;
    IF under_keys IS NOT NULL THEN
        named_jobs := ARRAY(
            SELECT unnest(k.job_ids)
              FROM (SELECT job_ids FROM idempotency_key
                     WHERE account_id = of_account AND key = ANY(under_keys) ORDER BY key FOR SHARE) k);
    END IF;
    LOOP
        SELECT a.may_convert, p.id, p.past_due, p.wallet_cents, n.id, n.max_file_bytes, n.monthly_conversions,
               n.monthly_data_bytes, n.retention_hours,
               CASE WHEN n.storage_region_choice AND a.storage_region = ANY(regions) THEN a.storage_region || '/'
                    ELSE '' END,
               coalesce(u.conversions, 0), coalesce(u.bytes, 0)
          INTO may_convert, of_payer, past_due, wallet_cents, plan_id, max_file_bytes, monthly_conversions,
               monthly_data_bytes, retention_hours, folder, used_conversions, used_bytes
          FROM account a JOIN payer p ON p.id = a.payer_id LEFT JOIN plan n ON n.id = p.plan_id
          LEFT JOIN usage u ON u.payer_id = p.id AND u.period = in_period
         WHERE a.id = of_account;
        taken := 0;
        taken_bytes := 0;
        taken_cents := 0;
        FOR i IN 1 .. cardinality(new_jobs) LOOP
            found_conversions[i] := used_conversions + taken;
            found_bytes[i] := used_bytes + taken_bytes;
            found_cents[i] := wallet_cents - taken_cents;
            lost[i] := under_keys IS NOT NULL AND under_keys[i] IS NOT NULL AND new_jobs[i] <> ALL (named_jobs);
            fits := NOT lost[i] AND may_convert AND NOT past_due
                AND CASE WHEN plan_id IS NULL THEN prices[i] <= found_cents[i]
                         ELSE sizes[i] <= max_file_bytes AND found_conversions[i] < monthly_conversions
                              AND found_bytes[i] + sizes[i] <= monthly_data_bytes END;
            admitted[i] := fits;
            IF fits THEN
                taken := taken + 1;
                taken_bytes := taken_bytes + sizes[i];
                taken_cents := taken_cents + prices[i];
            END IF;
        END LOOP;
        IF taken = 0 THEN
            RETURN;
        END IF;
        IF plan_id IS NULL THEN
            UPDATE payer p SET wallet_cents = p.wallet_cents - taken_cents
             WHERE p.id = of_payer AND p.wallet_cents >= taken_cents;
        ELSE
            INSERT INTO usage AS u (payer_id, period, conversions, bytes, conversions_allowed, bytes_allowed)
            VALUES (of_payer, in_period, taken, taken_bytes, monthly_conversions, monthly_data_bytes)
            ON CONFLICT (payer_id, period) DO UPDATE
               SET conversions = u.conversions + taken, bytes = u.bytes + taken_bytes,
                   conversions_allowed = monthly_conversions, bytes_allowed = monthly_data_bytes
             WHERE u.conversions + taken <= monthly_conversions AND u.bytes + taken_bytes <= monthly_data_bytes;
        END IF;
        EXIT WHEN FOUND;
    END LOOP;

    INSERT INTO job (id, account_id, payer_id, status, server_id, original_file_name, input_format, output_format,
                     input_size_bytes, period, price_cents, created_at, object_key)
    SELECT f.id, of_account, of_payer, 'Pending', on_server, f.file_name, f.input, f.output, f.size_bytes,
           CASE WHEN plan_id IS NOT NULL THEN in_period END, CASE WHEN plan_id IS NULL THEN f.price END, admitted_at,
           folder || f.object_name
      FROM (SELECT unnest(new_jobs) AS id, unnest(file_names) AS file_name, unnest(inputs) AS input,
                   unnest(outputs) AS output, unnest(sizes) AS size_bytes, unnest(prices) AS price,
                   unnest(object_names) AS object_name, unnest(admitted) AS fits) AS f
     WHERE f.fits;
END $$;

-- What processes of the version before this one call, until the last of them has stopped.
CREATE OR REPLACE FUNCTION admit_jobs(
    of_account uuid, on_server uuid, durable boolean, regions text[], new_jobs uuid[], file_names text[], inputs text[],
    outputs text[], sizes bigint[], prices bigint[], object_names text[], moments timestamptz[],
    OUT admitted boolean[], OUT found_conversions int[], OUT found_bytes bigint[], OUT found_cents bigint[],
    OUT may_convert boolean, OUT past_due boolean, OUT plan_id text, OUT max_file_bytes bigint,
    OUT monthly_conversions int, OUT monthly_data_bytes bigint, OUT retention_hours int, OUT folder text
) LANGUAGE sql AS $$
SELECT f.admitted, f.found_conversions, f.found_bytes, f.found_cents, f.may_convert, f.past_due, f.plan_id,
       f.max_file_bytes, f.monthly_conversions, f.monthly_data_bytes, f.retention_hours, f.folder
  FROM admit_files(of_account, on_server, durable, regions, new_jobs, file_names, inputs, outputs, sizes, prices,
                   object_names, NULL) f
$$;
