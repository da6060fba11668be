-- Copies of a database. A mark belongs to the database that stored it, and so does the right to delete in the region. A copy has
-- the row of its original, but is another database.

-- Identifies this database among all of all clusters: another one has a copy that was restored from a dump, or is a database of its own
-- beside its original. A copy of a whole cluster, as a base backup or a standby, has the same. Null where the host tells nobody.
CREATE FUNCTION database_identity() RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT c.system_identifier || '/' || d.oid
              FROM pg_control_system() c, pg_database d WHERE d.datname = current_database());
EXCEPTION WHEN OTHERS THEN
    RETURN NULL; -- some hosts of PostgreSQL refuse to tell it, each in its way
END $$;

ALTER TABLE store_mark ADD COLUMN marked_by text; -- the identity of the database; null if it is not known
