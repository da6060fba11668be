-- Who may convert, what it draws on, what was converted. What must never happen is a CHECK or a unique key here,
-- so that even a wrong program can neither overspend an allowance nor settle a job twice.

-- Rows are published from service/metering/plans.py by every migration run.
CREATE TABLE plan (
    id                  text PRIMARY KEY,
    owner               text   NOT NULL CHECK (owner IN ('user', 'organization')),
    monthly_conversions int    NOT NULL CHECK (monthly_conversions > 0),
    monthly_data_bytes  bigint NOT NULL CHECK (monthly_data_bytes > 0),
    max_file_bytes      bigint NOT NULL CHECK (max_file_bytes > 0),
    retention_hours     int    NOT NULL CHECK (retention_hours > 0),
    storage_region_choice boolean NOT NULL
);

CREATE TABLE organization (
    id         uuid PRIMARY KEY,
    name       text        NOT NULL UNIQUE,
    created_at timestamptz NOT NULL
);

-- Who is charged: one account, or an organisation whose members share one allowance. Either a plan or a wallet.
-- wallet_cents is what is still free to spend: the price of a running conversion has already left it.
CREATE TABLE payer (
    id              uuid PRIMARY KEY,
    organization_id uuid UNIQUE REFERENCES organization,
    plan_id         text REFERENCES plan,
    wallet_cents    bigint CHECK (wallet_cents >= 0),
    past_due        boolean NOT NULL DEFAULT false,
    CHECK ((plan_id IS NULL) <> (wallet_cents IS NULL)),
    CHECK (organization_id IS NULL OR plan_id IS NOT NULL)
);

CREATE TABLE account (
    id          uuid PRIMARY KEY,
    name        text        NOT NULL,
    payer_id    uuid        NOT NULL REFERENCES payer,
    may_convert boolean     NOT NULL DEFAULT true,
    storage_region text     NOT NULL DEFAULT '', -- heeded while the plan lets its accounts choose; '' is home
    created_at  timestamptz NOT NULL
);
CREATE INDEX account_by_payer ON account (payer_id);

-- Jobs and the ledger name accounts and payers without a foreign key, which would lock both rows at each admission: the
-- admission reads them in any case, and here they stay.
CREATE FUNCTION accounts_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'accounts and payers are never deleted, and keep their ids';
END $$;
CREATE TRIGGER account_stays BEFORE DELETE OR UPDATE OF id ON account FOR EACH ROW EXECUTE FUNCTION accounts_stay();
CREATE TRIGGER payer_stays BEFORE DELETE OR UPDATE OF id ON payer FOR EACH ROW EXECUTE FUNCTION accounts_stay();

CREATE TABLE api_key (
    id         uuid PRIMARY KEY,
    account_id uuid        NOT NULL REFERENCES account,
    key_hash   bytea       NOT NULL UNIQUE CHECK (length(key_hash) = 32),
    created_at timestamptz NOT NULL,
    revoked_at timestamptz
);
CREATE INDEX api_key_by_account ON api_key (account_id);

-- What a payer has used of one calendar month (UTC): settled and reserved together, so that settling a job need not
-- touch this hot row. The allowed columns hold the plan's caps of the latest admission (never below what is used).
CREATE TABLE usage (
    payer_id            uuid   NOT NULL REFERENCES payer,
    period              date   NOT NULL CHECK (extract(day FROM period) = 1),
    conversions         int    NOT NULL,
    bytes               bigint NOT NULL,
    conversions_allowed int    NOT NULL,
    bytes_allowed       bigint NOT NULL,
    PRIMARY KEY (payer_id, period),
    CHECK (conversions BETWEEN 0 AND conversions_allowed),
    CHECK (bytes BETWEEN 0 AND bytes_allowed)
) WITH (fillfactor = 40);

-- A process that serves. Its jobs are recovered once its heartbeat is older than the lease.
CREATE TABLE server (
    id           uuid PRIMARY KEY,
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL
);

CREATE TABLE job (
    id                 uuid PRIMARY KEY,
    account_id         uuid        NOT NULL,
    payer_id           uuid        NOT NULL,
    status             text        NOT NULL,
    server_id          uuid,
    attempt            int         NOT NULL DEFAULT 1, -- whoever takes the job over from a dead process counts it up
    original_file_name text        NOT NULL,
    input_format       text,
    output_format      text,
    input_size_bytes   bigint      NOT NULL CHECK (input_size_bytes >= 0),
    period             date,       -- the month that holds the reservation of a plan account
    price_cents        bigint CHECK (price_cents >= 0), -- what a wallet account pays
    created_at         timestamptz NOT NULL,
    completed_at       timestamptz,
    feature_count      bigint,
    geometry_type      text,
    processing_time_ms bigint,
    output_size_bytes  bigint,
    object_key         text,       -- of the output: known before there is one, gone once it is removed
    download_name      text,
    media_type         text,
    expires_at         timestamptz,
    error_message      text,
    details            jsonb,      -- the rest of the answer as it was given: warnings, report, flags, remainders
    CHECK (status IN ('Pending', 'Processing', 'Completed', 'Failed', 'Expired')),
    CHECK ((status IN ('Pending', 'Processing')) = (completed_at IS NULL)),
    CHECK ((status = 'Failed') = (error_message IS NOT NULL)),
    CHECK ((status = 'Completed') <= (object_key IS NOT NULL AND expires_at IS NOT NULL)),
    CHECK (status = 'Failed' OR (period IS NULL) <> (price_cents IS NULL))
) WITH (fillfactor = 70);
CREATE INDEX job_recent ON job (account_id, id DESC);
CREATE INDEX job_open ON job (server_id) WHERE status IN ('Pending', 'Processing');
CREATE INDEX job_expiring ON job (expires_at) WHERE status = 'Completed';
CREATE INDEX job_leftover ON job (id) WHERE status = 'Failed' AND object_key IS NOT NULL;

-- One row per converted file, never changed: the primary key is why a job cannot be settled twice.
CREATE TABLE ledger (
    job_id      uuid PRIMARY KEY,
    account_id  uuid        NOT NULL,
    payer_id    uuid        NOT NULL,
    period      date        NOT NULL,
    conversions int         NOT NULL CHECK (conversions IN (0, 1)),
    bytes       bigint      NOT NULL CHECK (bytes >= 0),
    cents       bigint      NOT NULL CHECK (cents >= 0),
    settled_at  timestamptz NOT NULL
);

CREATE FUNCTION ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only';
END $$;
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE ON ledger
    FOR EACH ROW EXECUTE FUNCTION ledger_is_append_only();

-- Credit that entered or left a wallet by hand; with the ledger it explains every balance.
CREATE TABLE wallet_credit (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    payer_id   uuid        NOT NULL REFERENCES payer,
    cents      bigint      NOT NULL,
    created_at timestamptz NOT NULL
);

-- The jobs that an Idempotency-Key made, in the order of the request's files; none yet while they are being admitted.
CREATE TABLE idempotency_key (
    account_id  uuid        NOT NULL REFERENCES account,
    key         text        NOT NULL,
    fingerprint bytea       NOT NULL,
    server_id   uuid        NOT NULL,
    job_ids     uuid[]      NOT NULL DEFAULT '{}',
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_key_by_age ON idempotency_key (created_at);

-- Reserve a conversion for each of some files of one account, first come, first served, and insert the jobs of those that
-- fit, in one round trip (contract 4). What is free is looked at without a lock and taken by one guarded change; where
-- another process took of it in between, look again. So the hot row is locked once for all files, for this statement's
-- end and its commit, which may be asynchronous: see docs/architecture.md, decision 1. `durable` is for callers that are
-- promised a job now.
-- What each file found used is what `metering.limits` needs to name the first limit that refuses.
CREATE FUNCTION admit_jobs(
    of_account uuid, on_server uuid, durable boolean, regions text[], new_jobs uuid[], file_names text[], inputs text[],
    outputs text[], sizes bigint[], prices bigint[], object_names text[], moments timestamptz[],
    OUT admitted boolean[], OUT found_conversions int[], OUT found_bytes bigint[], OUT found_cents bigint[],
    OUT may_convert boolean, OUT past_due boolean, OUT plan_id text, OUT max_file_bytes bigint,
    OUT monthly_conversions int, OUT monthly_data_bytes bigint, OUT retention_hours int, OUT folder text
) LANGUAGE plpgsql AS $$
DECLARE
    of_payer uuid;
    in_period date := date_trunc('month', moments[1] AT TIME ZONE 'UTC')::date; -- all are of one month
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
            fits := may_convert AND NOT past_due
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
           CASE WHEN plan_id IS NOT NULL THEN in_period END, CASE WHEN plan_id IS NULL THEN f.price END, f.at,
           folder || f.object_name
      FROM (SELECT unnest(new_jobs) AS id, unnest(file_names) AS file_name, unnest(inputs) AS input,
                   unnest(outputs) AS output, unnest(sizes) AS size_bytes, unnest(prices) AS price,
                   unnest(object_names) AS object_name, unnest(moments) AS at, unnest(admitted) AS fits) AS f
     WHERE f.fits;
END $$;
