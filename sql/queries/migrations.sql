-- name: limit_waiting
-- How long the statements of this transaction may wait for a lock.
SELECT set_config('lock_timeout', $1, true);

-- name: lock
-- One process migrates at a time; the lock goes with the transaction, whatever becomes of its process or its session.
SELECT pg_advisory_xact_lock(hashtextextended('geomill.migrations', 0));

-- name: exists
-- Whether this database has had any migration.
SELECT to_regclass('migration') IS NOT NULL;

-- name: create_table
-- Which migrations this database has had.
CREATE TABLE IF NOT EXISTS migration (
    number     int PRIMARY KEY,
    name       text        NOT NULL,
    checksum   bytea       NOT NULL CHECK (length(checksum) = 32),
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: applied
-- The migrations that were applied, in order.
SELECT number, name, checksum FROM migration ORDER BY number;

-- name: record
-- A migration has been applied; part of its transaction.
INSERT INTO migration (number, name, checksum) VALUES ($1, $2, $3);
