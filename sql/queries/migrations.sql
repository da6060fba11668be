-- name: lock
-- One process migrates at a time; the lock goes with the session, so a killed one leaves none behind.
SELECT pg_advisory_lock(hashtextextended('geomill.migrations', 0));

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
