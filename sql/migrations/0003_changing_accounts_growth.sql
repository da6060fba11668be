-- Accounts change what they draw on without losing use, debt or credit; and what grows can be pruned with the books intact.

-- A payer is an organisation's, or an account's own: one for its plans, one for its prepaid credit. None is ever given up, so
-- what was used, is due or is left waits there until the account comes back. Jobs name the payer that admitted them, and
-- are settled or released there, whatever their account draws on by then.
ALTER TABLE payer
    ADD COLUMN account_id uuid REFERENCES account DEFERRABLE INITIALLY DEFERRED, -- whose own it is
    ADD CHECK (account_id IS NULL OR organization_id IS NULL);
ALTER TABLE account
    ADD COLUMN plan_payer_id uuid REFERENCES payer; -- what it draws on when it has a plan: its own, or its organisation's
UPDATE payer p SET account_id = a.id FROM account a WHERE a.payer_id = p.id AND p.organization_id IS NULL;
UPDATE account a SET plan_payer_id = p.id FROM payer p WHERE p.id = a.payer_id AND p.plan_id IS NOT NULL;
SET CONSTRAINTS ALL IMMEDIATE; -- a table with checks that are still to come takes no index
CREATE UNIQUE INDEX payer_of_account ON payer (account_id, (plan_id IS NULL));
CREATE INDEX account_by_plan_payer ON account (plan_payer_id);

-- The payers that concern one account alone: its own, and that of an organisation without another member.
CREATE FUNCTION payers_alone_of(of_account uuid) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
    SELECT p.id FROM payer p WHERE p.account_id = of_account
    UNION
    SELECT a.plan_payer_id FROM account a
     WHERE a.id = of_account AND a.plan_payer_id IS NOT NULL
       AND NOT EXISTS (SELECT FROM account o WHERE o.plan_payer_id = a.plan_payer_id AND o.id <> of_account)
$$;

-- What the audit adds up, payer by payer and month by month.
CREATE INDEX ledger_by_payer ON ledger (payer_id, period) INCLUDE (conversions, bytes, cents);

-- Jobs go before their ledger rows do.
ALTER TABLE ledger ADD COLUMN job_pruned boolean NOT NULL DEFAULT false;

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

CREATE OR REPLACE FUNCTION ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(current_setting('geomill.pruning', true), '') <> 'on' THEN
        RAISE EXCEPTION 'the ledger is append-only';
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
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
CREATE INDEX job_by_end ON job (completed_at) WHERE status IN ('Expired', 'Failed');

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
CREATE INDEX ledger_prunable ON ledger (job_id) WHERE job_pruned;

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

-- Which process does what only one of them has to do, and until when; by the clock of the database.
CREATE TABLE chore_lease (
    chore      text PRIMARY KEY,
    server_id  uuid        NOT NULL,
    held_until timestamptz NOT NULL
);
