-- name: mark
-- The mark of a region, whether it was ever stored, and whether it is a day old, by which a bucket's rules may delete it.
-- If another database has stored it, this one is a copy.
SELECT mark, stored_at IS NOT NULL AS was_stored, marked_by <> database_identity() IS TRUE AS is_copy,
       stored_at NOT BETWEEN service_time() - interval '1 day' AND service_time() AS is_old
  FROM store_mark WHERE region = $1;

-- name: name_mark
-- Record the name of the mark of a region that has none yet.
INSERT INTO store_mark (region, mark) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: lock_mark
-- The mark of a region, for the one process that stores it.
SELECT mark FROM store_mark WHERE region = $1 FOR UPDATE SKIP LOCKED;

-- name: note_mark
-- Record that the mark of a region is stored, and who has stored it first, or has adopted the region.
UPDATE store_mark
   SET stored_at = service_time(), marked_by = CASE WHEN $2 OR marked_by IS NULL THEN database_identity() ELSE marked_by END
 WHERE region = $1;

-- name: newest_outputs
-- Outputs that should be in a region of the store for longest.
SELECT object_key FROM job
 WHERE status = 'Completed' AND expires_at > service_time() AND split_part(object_key, '/', -2) = $1
 ORDER BY expires_at DESC LIMIT $2;
