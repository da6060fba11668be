-- name: limit_waiting
-- Limit how long the statements of this transaction wait for a lock.
SELECT set_config('lock_timeout', $1, true);

-- name: lock
-- Serialize migrations; the lock ends with the transaction, whatever happens to its process or session.
SELECT pg_advisory_xact_lock(hashtextextended('geomill.migrations', 0));

-- name: exists
-- Return whether any migration was applied to this database.
SELECT to_regclass('migration') IS NOT NULL;

-- name: create_table
-- Create the table of applied migrations.
CREATE TABLE IF NOT EXISTS migration (
    number     int PRIMARY KEY,
    name       text        NOT NULL,
    checksum   bytea       NOT NULL CHECK (length(checksum) = 32),
    applied_at timestamptz NOT NULL DEFAULT now()
);

-- name: applied
-- List the applied migrations, in order.
SELECT number, name, checksum FROM migration ORDER BY number;

-- name: record
-- Record a migration, in its transaction.
INSERT INTO migration (number, name, checksum) VALUES ($1, $2, $3);
