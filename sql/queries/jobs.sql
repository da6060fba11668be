-- name: show_processing
-- Converters have these jobs. Nobody waits for it, and it waits for nobody: a job that is being ended is left alone.
UPDATE job SET status = 'Processing'
 WHERE id IN (SELECT id FROM job WHERE id = ANY($1) AND status = 'Pending' FOR UPDATE SKIP LOCKED);

-- name: insert_refused
-- A job that was refused before anything was reserved.
INSERT INTO job (id, account_id, payer_id, status, original_file_name, input_format, output_format, input_size_bytes,
                 created_at, completed_at, error_message, details)
SELECT $1, a.id, a.payer_id, 'Failed', $3, $4, $5, $6, $7, $7, $8, $9 FROM account a WHERE a.id = $2;

-- name: find
-- One job of one account.
SELECT id, status, original_file_name, input_format, output_format, input_size_bytes, created_at, completed_at,
       feature_count, geometry_type, processing_time_ms, output_size_bytes, object_key, download_name, media_type,
       expires_at, error_message, details
  FROM job WHERE id = $1 AND account_id = $2;

-- name: find_all
-- Some jobs of one account.
SELECT id, status, original_file_name, input_format, output_format, input_size_bytes, created_at, completed_at,
       feature_count, geometry_type, processing_time_ms, output_size_bytes, object_key, download_name, media_type,
       expires_at, error_message, details
  FROM job WHERE id = ANY($1) AND account_id = $2;

-- name: recent
-- The newest jobs of one account; their ids are in order of time.
SELECT id, status, original_file_name, input_format, output_format, input_size_bytes, created_at, completed_at,
       feature_count, geometry_type, processing_time_ms, output_size_bytes, object_key, download_name, media_type,
       expires_at, error_message, details
  FROM job WHERE account_id = $1 ORDER BY id DESC LIMIT $2;

-- name: heartbeat
-- This process is alive; its first beat registers it, and one that was cleared away meanwhile comes back.
INSERT INTO server (id, started_at, heartbeat_at) VALUES ($1, $2, $2)
ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at;

-- name: unregister_server
-- A process has ended in order.
DELETE FROM server WHERE id = $1;

-- name: abandoned
-- Open jobs whose process is gone or silent for longer than the lease.
SELECT j.id, j.object_key
  FROM job j LEFT JOIN server s ON s.id = j.server_id
 WHERE j.status IN ('Pending', 'Processing') AND (s.id IS NULL OR s.heartbeat_at < $1)
 LIMIT $2;

-- name: held
-- Open jobs of this process that were admitted before the given time.
SELECT id, object_key FROM job
 WHERE server_id = $1 AND status IN ('Pending', 'Processing') AND created_at < $2;

-- name: forget_servers
-- Processes that are silent for longer than the lease and have no open job left.
DELETE FROM server s
 WHERE s.heartbeat_at < $1
   AND NOT EXISTS (SELECT FROM job j WHERE j.server_id = s.id AND j.status IN ('Pending', 'Processing'));

-- name: lead_disposal
-- One process at a time disposes of outputs; the lock lasts as long as the transaction.
SELECT pg_try_advisory_xact_lock(hashtext('geomill.disposal'));

-- name: disposable
-- Outputs that nobody may have any more: past their retention, or left by a job that failed.
SELECT id, object_key FROM job
 WHERE (status = 'Completed' AND expires_at <= $1) OR (status = 'Failed' AND object_key IS NOT NULL)
 LIMIT $2;

-- name: mark_disposed
-- Their outputs are gone.
UPDATE job SET status = CASE status WHEN 'Completed' THEN 'Expired' ELSE status END, object_key = NULL
 WHERE id = ANY($1) AND object_key IS NOT NULL;
