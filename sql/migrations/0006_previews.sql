-- A preview of a result is an object beside it, under a key that the job records before the object exists. Once the job
-- is no longer Completed, the key becomes one of those that were given up, whose objects are removed, however late they
-- appear.
ALTER TABLE job ADD COLUMN preview_key text;

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
CREATE UNIQUE INDEX job_preview ON job (preview_key) WHERE preview_key IS NOT NULL;
