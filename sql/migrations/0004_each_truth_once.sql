-- What was decided or listed in several places is decided and listed in one; and no output is left under a key that nobody knows.

-- The month in UTC that use counts for now.
CREATE FUNCTION service_month() RETURNS date LANGUAGE sql STABLE
RETURN date_trunc('month', service_time() AT TIME ZONE 'UTC')::date;

-- A job as its owner sees it: past its retention it is Expired, swept or not. The view job_record, which lists the columns
-- of a job again, is for processes of the version before this one.
CREATE FUNCTION shown_status(of_job job) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN of_job.status = 'Completed' AND of_job.expires_at <= service_time() THEN 'Expired'
                ELSE of_job.status END
$$;

-- What a payer has used this month and has left of it, or of its prepaid credit; never below 0.
CREATE VIEW balance AS
SELECT p.id AS payer_id, service_month() AS period, coalesce(u.conversions, 0) AS used_conversions,
       coalesce(u.bytes, 0) AS used_bytes,
       CASE WHEN n.id IS NOT NULL THEN greatest(n.monthly_conversions - coalesce(u.conversions, 0), 0) END
           AS remaining_conversions,
       CASE WHEN n.id IS NOT NULL THEN greatest(n.monthly_data_bytes - coalesce(u.bytes, 0), 0) END AS remaining_bytes,
       p.wallet_cents
  FROM payer p LEFT JOIN plan n ON n.id = p.plan_id
  LEFT JOIN usage u ON u.payer_id = p.id AND u.period = service_month();

-- Make a plan what the program says: every column of the table is in `told` under its name.
CREATE FUNCTION publish_plan(told jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    columns text := (SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
                      WHERE attrelid = 'plan'::regclass AND attnum > 0 AND NOT attisdropped);
BEGIN
    INSERT INTO plan SELECT * FROM jsonb_populate_record(NULL::plan, told) ON CONFLICT (id) DO NOTHING;
    EXECUTE format('UPDATE plan SET (%1$s) = (SELECT %1$s FROM jsonb_populate_record(NULL::plan, $1)) WHERE id = $1->>''id''',
                   columns) USING told;
END $$;

-- The limits, in their order: which one refuses a file, NULL if none does. `terms` is NULL for who spends prepaid credit.
-- This decides; `metering.limits` has the words for each name.
CREATE FUNCTION limit_reached(
    may_convert boolean, past_due boolean, terms plan, size_bytes bigint, used_conversions bigint, used_bytes bigint,
    price_cents bigint, wallet_cents bigint
) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN may_convert IS NOT TRUE THEN 'access'
                WHEN past_due THEN 'payment'
                WHEN size_bytes > terms.max_file_bytes THEN 'fileSize'
                WHEN used_conversions >= terms.monthly_conversions THEN 'conversions'
                WHEN used_bytes + size_bytes > terms.monthly_data_bytes THEN 'data'
                WHEN price_cents > wallet_cents THEN 'wallet' END
$$;

-- Reserve a conversion for each of some files of one account, first come, first served, and insert the jobs of those that
-- fit, in one round trip. What is free is looked at without a lock and taken by one guarded change; where another process
-- took of it in between, so that the last of these files would not fit any more, look again. So the hot row is locked once
-- for all files, for this statement's end and its commit, which may be asynchronous: see docs/architecture.md, decision 1.
-- `durable` is for callers that are promised a job now. `refused_by` names for each file the limit that refuses it, `key`
-- where it comes under an idempotency key that does not name its job any more, and is NULL for a file that was admitted.
-- The keys stay locked until this transaction ends, so that nobody takes one over in between. `seen_terms` is the plan, as
-- it was seen, where something was refused.
CREATE FUNCTION admit_uploads(
    of_account uuid, on_server uuid, durable boolean, regions text[], new_jobs uuid[], file_names text[], inputs text[],
    outputs text[], sizes bigint[], prices bigint[], object_names text[], under_keys text[],
    OUT refused_by text[], OUT found_conversions bigint[], OUT found_bytes bigint[], OUT found_cents bigint[],
    OUT seen_terms jsonb, OUT retention_hours int, OUT folder text, OUT admitted_at timestamptz
) LANGUAGE plpgsql AS $$
DECLARE
    seen record;
    in_period date := service_month();
    named_jobs uuid[];
    taken int;
    taken_bytes bigint;
    taken_cents bigint;
    last_taken int;
BEGIN
    IF NOT durable THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    admitted_at := service_time();
    IF under_keys IS NOT NULL THEN
        named_jobs := ARRAY(
            SELECT unnest(k.job_ids)
              FROM (SELECT job_ids FROM idempotency_key
                     WHERE account_id = of_account AND key = ANY(under_keys) ORDER BY key FOR SHARE) k);
    END IF;
    LOOP
        SELECT a.may_convert, p.id AS payer_id, p.past_due, p.wallet_cents, n AS terms, n.id AS plan_id,
               CASE WHEN n.storage_region_choice AND a.storage_region = ANY(regions) THEN a.storage_region || '/'
                    ELSE '' END AS folder,
               coalesce(u.conversions, 0)::bigint AS conversions, coalesce(u.bytes, 0) AS bytes
          INTO seen
          FROM account a JOIN payer p ON p.id = a.payer_id LEFT JOIN plan n ON n.id = p.plan_id
          LEFT JOIN usage u ON u.payer_id = p.id AND u.period = in_period
         WHERE a.id = of_account;
        taken := 0;
        taken_bytes := 0;
        taken_cents := 0;
        FOR i IN 1 .. cardinality(new_jobs) LOOP
            found_conversions[i] := seen.conversions + taken;
            found_bytes[i] := seen.bytes + taken_bytes;
            found_cents[i] := seen.wallet_cents - taken_cents;
            refused_by[i] := CASE
                WHEN under_keys[i] IS NOT NULL AND new_jobs[i] <> ALL (named_jobs) THEN 'key'
                ELSE limit_reached(seen.may_convert, seen.past_due, seen.terms, sizes[i], found_conversions[i],
                                   found_bytes[i], prices[i], found_cents[i]) END;
            IF refused_by[i] IS NULL THEN
                last_taken := i;
                taken := taken + 1;
                taken_bytes := taken_bytes + sizes[i];
                taken_cents := taken_cents + prices[i];
            END IF;
        END LOOP;
        IF taken < cardinality(new_jobs) THEN
            seen_terms := to_jsonb(seen.terms);
        END IF;
        IF taken = 0 THEN
            RETURN;
        END IF;
        IF seen.plan_id IS NULL THEN
            UPDATE payer p SET wallet_cents = p.wallet_cents - taken_cents
             WHERE p.id = seen.payer_id
               AND limit_reached(seen.may_convert, seen.past_due, seen.terms, sizes[last_taken], 0, 0, prices[last_taken],
                                 p.wallet_cents - taken_cents + prices[last_taken]) IS NULL;
        ELSE
            INSERT INTO usage AS u (payer_id, period, conversions, bytes, conversions_allowed, bytes_allowed)
            VALUES (seen.payer_id, in_period, taken, taken_bytes, (seen.terms).monthly_conversions,
                    (seen.terms).monthly_data_bytes)
            ON CONFLICT (payer_id, period) DO UPDATE
               SET conversions = u.conversions + taken, bytes = u.bytes + taken_bytes,
                   conversions_allowed = excluded.conversions_allowed, bytes_allowed = excluded.bytes_allowed
             WHERE limit_reached(seen.may_convert, seen.past_due, seen.terms, sizes[last_taken],
                                 u.conversions + taken - 1, u.bytes + taken_bytes - sizes[last_taken], 0, NULL) IS NULL;
        END IF;
        EXIT WHEN FOUND;
    END LOOP;
    retention_hours := (seen.terms).retention_hours;
    folder := seen.folder;

    INSERT INTO job (id, account_id, payer_id, status, server_id, original_file_name, input_format, output_format,
                     input_size_bytes, period, price_cents, created_at, object_key)
    SELECT f.id, of_account, seen.payer_id, 'Pending', on_server, f.file_name, f.input, f.output, f.size_bytes,
           CASE WHEN seen.plan_id IS NOT NULL THEN in_period END, CASE WHEN seen.plan_id IS NULL THEN f.price END,
           admitted_at, seen.folder || f.object_name
      FROM (SELECT unnest(new_jobs) AS id, unnest(file_names) AS file_name, unnest(inputs) AS input,
                   unnest(outputs) AS output, unnest(sizes) AS size_bytes, unnest(prices) AS price,
                   unnest(object_names) AS object_name, unnest(refused_by) AS refused_by) AS f
     WHERE f.refused_by IS NULL;
END $$;

-- Keys that a job gave up while the process of that attempt may still be storing under them: it may have been frozen in
-- the middle of it, complete it later, and be killed then. What appears there is removed, less and less often.
CREATE TABLE late_object (
    object_key  text PRIMARY KEY,
    given_up_at timestamptz NOT NULL,
    next_at     timestamptz NOT NULL
);
CREATE INDEX late_object_by_turn ON late_object (next_at);

CREATE FUNCTION note_late_object() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO late_object VALUES (OLD.object_key, service_time(), service_time()) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
-- An attempt that fails and has stored nothing gives its own key up; one that has completed its job stores no more.
CREATE TRIGGER job_gives_key_up AFTER UPDATE OF object_key ON job FOR EACH ROW
    WHEN (OLD.object_key IS NOT NULL AND NEW.object_key IS DISTINCT FROM OLD.object_key
          AND (OLD.status = 'Failed' OR NEW.attempt <> OLD.attempt))
    EXECUTE FUNCTION note_late_object();
