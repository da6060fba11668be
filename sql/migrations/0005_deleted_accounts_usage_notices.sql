-- Accounts can be deleted while the books stay; usage can be read by day; a payer near its allowance is noticed once.

-- An account that was deleted has neither a name nor keys, and may not convert. Its row stays, because the ledger names it.
ALTER TABLE account ADD COLUMN deleted_at timestamptz;

-- What happens to an open job, for its owner to see; looked at a few times a second, and of no other consequence.
ALTER TABLE job ADD COLUMN stage text;

-- The ledger grows in the order of time, so this index takes a few pages.
CREATE INDEX ledger_by_time ON ledger USING brin (settled_at);

-- Of which allowance a payer has used most in a month: one row each, made when operators are told.
CREATE TABLE allowance_notice (
    payer_id   uuid        NOT NULL REFERENCES payer,
    period     date        NOT NULL,
    allowance  text        NOT NULL CHECK (allowance IN ('conversions', 'data')),
    noticed_at timestamptz NOT NULL,
    PRIMARY KEY (payer_id, period, allowance)
);
CREATE INDEX usage_by_month ON usage (period);
