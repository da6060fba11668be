-- replaces: 0018_marks_of_stores.sql 1082e5018de5ef84c19c71ae9f94c1d72e20f3d3db173a6bdfdeba3c4a725c24
-- Who may convert, what it draws on, what was converted. What must never happen is a CHECK or a unique key here,
-- so that even a wrong program can neither overspend an allowance nor settle a job twice. Every change of a job or of an
-- idempotency key is fenced in the statement that makes it, and whatever one process decides about another is decided by
-- the clock of this database.

-- The one clock for all hosts. A function, so that tests can move it; it is inlined.
CREATE FUNCTION service_time() RETURNS timestamptz LANGUAGE sql STABLE RETURN now();

-- The month in UTC that use counts for now.
CREATE FUNCTION service_month() RETURNS date LANGUAGE sql STABLE
RETURN date_trunc('month', service_time() AT TIME ZONE 'UTC')::date;

-- PLANS, ACCOUNTS, PAYERS

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

CREATE TABLE organization (
    id         uuid PRIMARY KEY,
    name       text        NOT NULL UNIQUE,
    created_at timestamptz NOT NULL
);

-- Who is charged: an organization whose members share one allowance, or an account of its own: one payer for its plans, one
-- for its prepaid credit. Either a plan or a wallet. None is ever given up, so what was used, is due or is left waits there
-- until the account comes back. Jobs name the payer that admitted them, and are settled or released there, whatever their
-- account draws on by then.
-- wallet_cents is what is still free to spend: the price of a running conversion has already left it.
CREATE TABLE payer (
    id              uuid PRIMARY KEY,
    organization_id uuid UNIQUE REFERENCES organization,
    account_id      uuid, -- whose own it is
    plan_id         text REFERENCES plan,
    wallet_cents    bigint CHECK (wallet_cents >= 0),
    past_due        boolean NOT NULL DEFAULT false,
    CHECK ((plan_id IS NULL) <> (wallet_cents IS NULL)),
    CHECK (organization_id IS NULL OR plan_id IS NOT NULL),
    CHECK (account_id IS NULL OR organization_id IS NULL)
);
CREATE UNIQUE INDEX payer_of_account ON payer (account_id, (plan_id IS NULL));

-- An account that was deleted has neither a name nor keys, and may not convert. Its row stays, because the ledger names it.
CREATE TABLE account (
    id             uuid PRIMARY KEY,
    name           text        NOT NULL,
    payer_id       uuid        NOT NULL REFERENCES payer,
    plan_payer_id  uuid REFERENCES payer,           -- what it draws on when it has a plan: its own, or its organization's
    may_convert    boolean     NOT NULL DEFAULT true,
    storage_region text        NOT NULL DEFAULT '', -- heeded while the plan lets its accounts choose; '' is home
    created_at     timestamptz NOT NULL,
    deleted_at     timestamptz
);
CREATE INDEX account_by_payer ON account (payer_id);
CREATE INDEX account_by_plan_payer ON account (plan_payer_id);
ALTER TABLE payer ADD FOREIGN KEY (account_id) REFERENCES account DEFERRABLE INITIALLY DEFERRED;

-- Jobs and the ledger name accounts and payers without a foreign key, which would lock both rows at each admission: the
-- admission reads them in any case, and here they stay.
CREATE FUNCTION accounts_stay() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'accounts and payers are never deleted, and keep their ids';
END $$;
CREATE TRIGGER account_stays BEFORE DELETE OR UPDATE OF id ON account FOR EACH ROW EXECUTE FUNCTION accounts_stay();
CREATE TRIGGER payer_stays BEFORE DELETE OR UPDATE OF id ON payer FOR EACH ROW EXECUTE FUNCTION accounts_stay();

-- The payers that concern one account alone: its own, and that of an organization without another member. A member that was
-- deleted does not come back: the last of the others takes the use and the debt of the organization along.
CREATE FUNCTION payers_alone_of(of_account uuid) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
    SELECT p.id FROM payer p WHERE p.account_id = of_account
    UNION
    SELECT a.plan_payer_id FROM account a
     WHERE a.id = of_account AND a.plan_payer_id IS NOT NULL
       AND NOT EXISTS (SELECT FROM account o
                        WHERE o.plan_payer_id = a.plan_payer_id AND o.id <> of_account AND o.deleted_at IS NULL)
$$;

CREATE TABLE api_key (
    id         uuid PRIMARY KEY,
    account_id uuid        NOT NULL REFERENCES account,
    key_hash   bytea       NOT NULL UNIQUE CHECK (length(key_hash) = 32),
    created_at timestamptz NOT NULL,
    revoked_at timestamptz
);
CREATE INDEX api_key_by_account ON api_key (account_id);

-- BOOKS

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
CREATE INDEX usage_by_month ON usage (period);

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

-- Of which allowance a payer has used most in a month: one row each, made when operators are told.
CREATE TABLE allowance_notice (
    payer_id   uuid        NOT NULL REFERENCES payer,
    period     date        NOT NULL,
    allowance  text        NOT NULL CHECK (allowance IN ('conversions', 'data')),
    noticed_at timestamptz NOT NULL,
    PRIMARY KEY (payer_id, period, allowance)
);

-- One row per converted file: the primary key is why a job cannot be settled twice. It changes only when it is pruned.
CREATE TABLE ledger (
    job_id      uuid PRIMARY KEY,
    account_id  uuid        NOT NULL,
    payer_id    uuid        NOT NULL,
    period      date        NOT NULL,
    conversions int         NOT NULL CHECK (conversions IN (0, 1)),
    bytes       bigint      NOT NULL CHECK (bytes >= 0),
    cents       bigint      NOT NULL CHECK (cents >= 0),
    settled_at  timestamptz NOT NULL,
    job_pruned  boolean     NOT NULL DEFAULT false -- jobs go before their ledger rows do
);
-- What the audit adds up, payer by payer and month by month.
CREATE INDEX ledger_by_payer ON ledger (payer_id, period) INCLUDE (conversions, bytes, cents);
-- The ledger grows in the order of time, so this index takes a few pages.
CREATE INDEX ledger_by_time ON ledger USING brin (settled_at);
CREATE INDEX ledger_prunable ON ledger (job_id) WHERE job_pruned;

CREATE FUNCTION ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('geomill.pruning', true), '') <> 'on' THEN
        RAISE EXCEPTION 'the ledger is append-only';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE ON ledger
    FOR EACH ROW EXECUTE FUNCTION ledger_is_append_only();

-- What the ledger rows that were pruned added up to: they go and are added in one statement, so that ledger and sums
-- together are the books at any moment. Months whose counters were pruned as well are one row, of the period -infinity.
CREATE TABLE ledger_sum (
    payer_id    uuid   NOT NULL REFERENCES payer,
    period      date   NOT NULL,
    conversions bigint NOT NULL CHECK (conversions >= 0),
    bytes       bigint NOT NULL CHECK (bytes >= 0),
    cents       bigint NOT NULL CHECK (cents >= 0),
    PRIMARY KEY (payer_id, period)
);

-- Credit that entered or left a wallet by hand; with the ledger it explains every balance.
CREATE TABLE wallet_credit (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    payer_id   uuid        NOT NULL REFERENCES payer,
    cents      bigint      NOT NULL,
    created_at timestamptz NOT NULL
);

-- PROCESSES

-- A process that serves. Its jobs are recovered once its heartbeat is older than the lease.
CREATE TABLE server (
    id           uuid PRIMARY KEY,
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    formats      jsonb,                          -- what a worker can read and write, so that gateways need no GDAL to know
    converters   int,                            -- that take jobs of any gateway; null without any
    hands_over   boolean     NOT NULL DEFAULT false -- whether it is such a gateway
);

-- Whether a process has sent a heartbeat within the lease.
CREATE FUNCTION is_alive(of_server uuid, lease interval) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM server WHERE id = of_server AND heartbeat_at >= service_time() - lease)
$$;

-- Which process does what only one of them has to do, and until when; by the clock of the database.
CREATE TABLE chore_lease (
    chore      text PRIMARY KEY,
    server_id  uuid        NOT NULL,
    held_until timestamptz NOT NULL
);

-- The object by which each region of the store shows that it belongs to this database, so that a process with other settings
-- does not take what it does not find there for deleted. Two databases that share a bucket have one mark each.
CREATE TABLE store_mark (
    region    text PRIMARY KEY,   -- empty: home
    mark      text NOT NULL,
    stored_at timestamptz         -- when it was last stored; null if it never was
);

-- JOBS

CREATE TABLE job (
    id                 uuid PRIMARY KEY,
    account_id         uuid        NOT NULL,
    payer_id           uuid        NOT NULL,
    status             text        NOT NULL,
    server_id          uuid,       -- the process that admitted it
    worker_id          uuid,       -- the process that claimed this attempt, if another than the one that admitted the job
    attempt            int         NOT NULL DEFAULT 1, -- whoever takes the job over counts it up
    failed_attempts    int         NOT NULL DEFAULT 0, -- that a fault of the service has ended: it is not tried without end
    deaths             int         NOT NULL DEFAULT 0, -- workers that died while a converter had begun on it
    stage              text,       -- what happens to it now, for its owner to see, and of no other consequence
    stage_share        double precision, -- how much of the stage is done, from 0 to 1, where the converter reports it
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
    admitted_key       text,       -- the one that admission recorded, null until an attempt has another
    preview_key        text,       -- of a preview of the result: recorded before there is one
    input_key          text,       -- of the input in the store: recorded before there is one, gone once it is removed
    handover           bytea,      -- what workers are told; from then on, the job survives the process that admitted it
    download_name      text,
    media_type         text,
    expires_at         timestamptz,
    error_message      text,
    interrupted        boolean     NOT NULL DEFAULT false, -- it failed because the service was interrupted, which says
                                   -- nothing about its file: a repeat under its idempotency key converts the file anew
    details            jsonb,      -- the rest of the answer as it was given: warnings, report, flags, remainders
    CHECK (status IN ('Pending', 'Processing', 'Completed', 'Failed', 'Expired')),
    CHECK ((status IN ('Pending', 'Processing')) = (completed_at IS NULL)),
    CHECK ((status = 'Failed') = (error_message IS NOT NULL)),
    CHECK ((status = 'Completed') <= (object_key IS NOT NULL AND expires_at IS NOT NULL)),
    CHECK (status = 'Failed' OR (period IS NULL) <> (price_cents IS NULL)),
    CONSTRAINT only_failed_jobs_are_interrupted CHECK (NOT interrupted OR status = 'Failed')
) WITH (fillfactor = 70);
CREATE INDEX job_recent ON job (account_id, id DESC);
CREATE INDEX job_open ON job (server_id) WHERE status IN ('Pending', 'Processing');
CREATE INDEX job_expiring ON job (expires_at) WHERE status = 'Completed';
CREATE INDEX job_leftover ON job (id) WHERE status = 'Failed' AND object_key IS NOT NULL;
CREATE INDEX job_by_end ON job (completed_at) WHERE status IN ('Expired', 'Failed');
CREATE UNIQUE INDEX job_preview ON job (preview_key) WHERE preview_key IS NOT NULL;
CREATE INDEX job_handed_over ON job (id) WHERE completed_at IS NULL AND handover IS NOT NULL;
CREATE UNIQUE INDEX job_input ON job (input_key) WHERE input_key IS NOT NULL;

-- A job as its owner sees it: past its retention it is Expired, swept or not.
CREATE FUNCTION shown_status(of_job job) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN of_job.status = 'Completed' AND of_job.expires_at <= service_time() THEN 'Expired'
                ELSE of_job.status END
$$;

-- Whether nobody will end an open job: no living process works on it, and none will be told to.
CREATE FUNCTION is_abandoned(of_job job, lease interval) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT of_job.completed_at IS NULL AND of_job.handover IS NULL
       AND NOT is_alive(of_job.server_id, lease) AND NOT is_alive(of_job.worker_id, lease)
$$;

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

-- A preview of a result is an object beside it. Once the job is no longer Completed, its key becomes one of those that were
-- given up, whose objects are removed, however late they appear.
CREATE FUNCTION give_up_preview() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO late_object VALUES (OLD.preview_key, service_time(), service_time()) ON CONFLICT DO NOTHING;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    END IF;
    NEW.preview_key = NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER job_gives_preview_up BEFORE UPDATE OF status ON job FOR EACH ROW
    WHEN (OLD.preview_key IS NOT NULL AND NEW.status <> 'Completed')
    EXECUTE FUNCTION give_up_preview();
CREATE TRIGGER deleted_job_gives_preview_up BEFORE DELETE ON job FOR EACH ROW
    WHEN (OLD.preview_key IS NOT NULL)
    EXECUTE FUNCTION give_up_preview();

-- The jobs that an Idempotency-Key made, in the order of the request's files. A key is held by the request whose jobs it
-- names: what is not named any more is admitted no more. Its process prolongs held_until while it admits; after that an open
-- job of a living process holds the key, or else nobody does.
CREATE TABLE idempotency_key (
    account_id  uuid        NOT NULL REFERENCES account,
    key         text        NOT NULL,
    fingerprint bytea       NOT NULL,
    job_ids     uuid[]      NOT NULL,
    created_at  timestamptz NOT NULL,
    held_until  timestamptz NOT NULL,
    PRIMARY KEY (account_id, key)
);
CREATE INDEX idempotency_key_by_age ON idempotency_key (created_at);

-- WHAT CHANGES JOBS, KEYS AND BOOKS

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
-- under the key; see admit_uploads for the other side.
-- `no_later` is the time by all clocks that the process knows: a key that is old by a clock that has just jumped is kept.
CREATE FUNCTION claim_key(
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

-- Give each job to a worker in a new attempt, or say why not:
--   claimed   the worker is to run this attempt, whose output nobody else may have stored under `output`
--   held      another process that is alive has it
--   given up  the last of `most_deaths` workers has died with it: it failed just now, for `reason`
--   forged    its seal is not that of the digest with the job's secret: nothing has changed
-- A job without a row has ended, or is none of this account and gateway. A job without a digest was not told by a message.
-- The `secret` is the key that admission recorded for the output, the same for all attempts.
-- `is_doubtful`: a worker has died with it, whether or not the job had to do with that; what only waited there is counted no
-- death. `is_suspect`: one more death is the last. The commit is synchronous, and so the admission that it builds on is on
-- the disk as well.
CREATE FUNCTION claim_jobs(
    of_jobs uuid[], of_accounts uuid[], of_gateways uuid[], new_names text[], digests bytea[], seals bytea[],
    on_worker uuid, lease interval, most_deaths int, reason text
) RETURNS TABLE (
    job_id uuid, verdict text, attempt int, output text, input text, is_doubtful boolean, is_suspect boolean, secret text
)
LANGUAGE plpgsql AS $$
BEGIN
    -- In one order, so that two workers do not wait for each other; what they changed meanwhile is seen below.
    PERFORM FROM job j WHERE j.id = ANY(of_jobs) AND j.completed_at IS NULL ORDER BY j.id FOR UPDATE;
    RETURN QUERY
    WITH former AS (
        SELECT j.id, j.attempt, j.object_key, g.new_name, s.secret,
               sha256(convert_to(s.secret, 'UTF8') || g.digest) <> g.seal IS TRUE AS is_forged,
               is_alive(j.worker_id, lease) AS is_held,
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

-- Remove up to `at_most` jobs that ended before the given time, the oldest first. A job stays as long as it has an output
-- in the store, or disagrees with the ledger, which the audit is to find.
CREATE FUNCTION prune_jobs(ended_before timestamptz, at_most int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    pruned int;
BEGIN
    PERFORM set_config('geomill.pruning', 'on', true);
    WITH old AS (
        SELECT j.id FROM job j LEFT JOIN ledger l ON l.job_id = j.id
         WHERE j.completed_at < ended_before AND j.object_key IS NULL
           AND (j.status = 'Expired' AND l.job_id IS NOT NULL OR j.status = 'Failed' AND l.job_id IS NULL)
         ORDER BY j.completed_at LIMIT at_most
    ), detached AS (
        UPDATE ledger l SET job_pruned = true FROM old WHERE l.job_id = old.id
    )
    DELETE FROM job j USING old WHERE j.id = old.id;
    GET DIAGNOSTICS pruned = ROW_COUNT;
    PERFORM set_config('geomill.pruning', '', true);
    RETURN pruned;
END $$;

-- Remove up to `at_most` ledger rows of months before the given one whose jobs are gone, and keep what they add up to.
CREATE FUNCTION prune_ledger(before date, at_most int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    pruned int;
BEGIN
    PERFORM set_config('geomill.pruning', 'on', true);
    WITH old AS (
        SELECT job_id FROM ledger WHERE job_pruned AND period < before ORDER BY job_id LIMIT at_most FOR UPDATE SKIP LOCKED
    ), gone AS (
        DELETE FROM ledger l USING old WHERE l.job_id = old.job_id
        RETURNING l.payer_id, l.period, l.conversions, l.bytes, l.cents
    ), summed AS (
        INSERT INTO ledger_sum AS s (payer_id, period, conversions, bytes, cents)
        SELECT payer_id, period, sum(conversions), sum(CASE WHEN conversions > 0 THEN bytes ELSE 0 END), sum(cents)
          FROM gone GROUP BY payer_id, period ORDER BY payer_id, period
        ON CONFLICT (payer_id, period) DO UPDATE
           SET conversions = s.conversions + excluded.conversions, bytes = s.bytes + excluded.bytes,
               cents = s.cents + excluded.cents
    )
    SELECT count(*) INTO pruned FROM gone;
    PERFORM set_config('geomill.pruning', '', true);
    RETURN pruned;
END $$;

-- Remove the counters and sums of up to `at_most` months before the given one that are closed: nothing of them is in the
-- ledger or open any more, and counter and sum agree. What they cost a wallet is kept in one row for each payer.
CREATE FUNCTION prune_usage(before date, at_most int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    pruned int;
BEGIN
    WITH closed AS (
        SELECT s.payer_id, s.period
          FROM ledger_sum s LEFT JOIN usage u ON u.payer_id = s.payer_id AND u.period = s.period
         WHERE s.period > '-infinity' AND s.period < before
           AND (s.conversions, s.bytes) = (coalesce(u.conversions, 0), coalesce(u.bytes, 0))
           AND NOT EXISTS (SELECT FROM ledger l WHERE l.payer_id = s.payer_id AND l.period = s.period)
         ORDER BY s.payer_id, s.period LIMIT at_most FOR UPDATE OF s SKIP LOCKED
    ), unused AS (
        SELECT u.payer_id, u.period FROM usage u
         WHERE u.period < before AND (u.conversions, u.bytes) = (0, 0)
           AND NOT EXISTS (SELECT FROM ledger_sum s WHERE s.payer_id = u.payer_id AND s.period = u.period)
         ORDER BY u.payer_id, u.period LIMIT at_most FOR UPDATE SKIP LOCKED
    ), counters AS (
        DELETE FROM usage u USING (TABLE closed UNION TABLE unused) AS c
         WHERE u.payer_id = c.payer_id AND u.period = c.period
    ), gone AS (
        DELETE FROM ledger_sum s USING closed c WHERE s.payer_id = c.payer_id AND s.period = c.period
        RETURNING s.payer_id, s.conversions, s.bytes, s.cents
    ), folded AS (
        INSERT INTO ledger_sum AS s (payer_id, period, conversions, bytes, cents)
        SELECT payer_id, '-infinity', sum(conversions), sum(bytes), sum(cents) FROM gone GROUP BY payer_id ORDER BY payer_id
        ON CONFLICT (payer_id, period) DO UPDATE
           SET conversions = s.conversions + excluded.conversions, bytes = s.bytes + excluded.bytes,
               cents = s.cents + excluded.cents
    )
    SELECT (SELECT count(*) FROM closed) + (SELECT count(*) FROM unused) INTO pruned;
    RETURN pruned;
END $$;
