-- name: show_processing
-- Mark jobs that have a converter in this attempt, what happens to them, and how much of it is done. Skips jobs that are
-- being ended, so that it never waits for another statement.
UPDATE job j SET status = 'Processing', stage = given.stage, stage_share = given.share
  FROM unnest($1::uuid[], $2::text[], $3::float8[], $4::int[]) AS given (id, stage, share, attempt)
 WHERE j.id = given.id AND j.attempt = given.attempt
   AND j.id IN (SELECT id FROM job WHERE id = ANY($1) AND completed_at IS NULL FOR UPDATE SKIP LOCKED);

-- name: insert_failed
-- Insert a failed job without a reservation; with an idempotency key only while that key names it. It never replaces
-- an existing job. Of the file of a deleted account it records nothing that could name it.
WITH named AS (
    SELECT FROM idempotency_key WHERE account_id = $2 AND key = $9 AND $1 = ANY(job_ids) FOR SHARE
), told (file_name, error_message, details) AS (
    SELECT $3, $7, $8::jsonb FROM account WHERE id = $2 AND deleted_at IS NULL
)
INSERT INTO job (id, account_id, payer_id, status, original_file_name, input_format, output_format, input_size_bytes,
                 created_at, completed_at, error_message, details, interrupted)
SELECT $1, a.id, a.payer_id, 'Failed', coalesce(t.file_name, ''), $4, $5, $6, service_time(), service_time(),
       coalesce(t.error_message, ''), coalesce(t.details, '{}'), $10
  FROM account a LEFT JOIN told t ON true WHERE a.id = $2 AND ($9::text IS NULL OR EXISTS (SELECT FROM named))
ON CONFLICT (id) DO NOTHING
RETURNING completed_at;

-- name: find
-- One job of one account.
SELECT *, shown_status(job) FROM job WHERE id = $1 AND account_id = $2;

-- name: find_all
-- Some jobs of one account.
SELECT *, shown_status(job) FROM job WHERE id = ANY($1) AND account_id = $2;

-- name: of_any
-- Some jobs of any account.
SELECT *, shown_status(job) FROM job WHERE id = ANY($1);

-- name: ended
-- Those of these jobs that have ended, of any account.
SELECT *, shown_status(job) FROM job WHERE id = ANY($1) AND completed_at IS NOT NULL;

-- name: was_cancelled
-- Whether this cancellation has ended a job, rather than another one.
SELECT true FROM job WHERE id = $1 AND details ->> 'cancellation' = $2;

-- name: open_of
-- The open jobs of one account.
SELECT *, shown_status(job) FROM job WHERE account_id = $1 AND completed_at IS NULL;

-- name: kept_of
-- The next jobs of one account, in their order, that have an output in the store.
SELECT *, shown_status(job) FROM job
 WHERE account_id = $1 AND object_key IS NOT NULL AND status = 'Completed' AND id > $2 ORDER BY id LIMIT $3;

-- name: anonymise
-- Remove from the ended jobs of one account whatever could identify a person or a file.
UPDATE job SET original_file_name = '', download_name = NULL, details = '{}', handover = NULL,
               error_message = CASE WHEN status = 'Failed' THEN $2 END
 WHERE account_id = $1 AND completed_at IS NOT NULL
   AND (original_file_name <> '' OR download_name IS NOT NULL OR handover IS NOT NULL);

-- name: recent
-- The newest jobs of one account; ids are ordered by time.
SELECT *, shown_status(job) FROM job WHERE account_id = $1 ORDER BY id DESC LIMIT $2;

-- name: preview_key
-- The key of the preview of a result that is kept: the one that the job has, or from now on the given one.
UPDATE job SET preview_key = coalesce(preview_key, $3)
 WHERE id = $1 AND account_id = $2 AND status = 'Completed' AND expires_at > service_time()
RETURNING preview_key;

-- name: heartbeat
-- Record a heartbeat; the first one registers the process, and later ones restore a deleted registration. A worker tells
-- the formats that it can read and write, the versions of handovers that it reads, and how many converters it has for jobs of
-- any gateway: none while it has paused. Returns the time.
INSERT INTO server (id, started_at, heartbeat_at, formats, converters, hands_over, reads)
VALUES ($1, service_time(), service_time(), $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, converters = excluded.converters
RETURNING heartbeat_at;

-- name: offers
-- What each worker that is alive can read and write.
SELECT formats FROM server WHERE formats IS NOT NULL AND heartbeat_at >= service_time() - $1::interval;

-- name: size
-- How many converters all workers have together that are alive, how many of these workers have paused, and how many living
-- processes hand jobs over to them.
SELECT coalesce(sum(converters), 0)::int AS converters, count(*) FILTER (WHERE converters = 0)::int AS paused,
       count(*) FILTER (WHERE hands_over)::int AS gateways
  FROM server WHERE heartbeat_at >= service_time() - $1::interval;

-- name: unregister_server
-- Remove a process that ended normally.
DELETE FROM server WHERE id = $1;

-- name: bring_back
-- Let heartbeats of the future, which the clock was set back from, be sent now.
UPDATE server SET heartbeat_at = service_time() WHERE heartbeat_at > service_time();

-- name: abandoned
-- Open jobs whose process has ended or whose lease has expired, except those whose counter is locked now: ending them would
-- wait. They come in random order, so that those that cannot be ended leave the others their turn.
WITH abandoned AS MATERIALIZED (
    SELECT id, attempt, object_key, payer_id, period FROM job j
     WHERE j.status IN ('Pending', 'Processing') AND is_abandoned(j, $1::interval)
     ORDER BY random() LIMIT $2
)
SELECT id, attempt, object_key FROM abandoned a
 WHERE CASE WHEN period IS NULL
            THEN EXISTS (SELECT FROM payer p WHERE p.id = a.payer_id FOR UPDATE SKIP LOCKED)
            ELSE EXISTS (SELECT FROM usage u WHERE (u.payer_id, u.period) = (a.payer_id, a.period) FOR UPDATE SKIP LOCKED)
                 OR NOT EXISTS (SELECT FROM usage u WHERE (u.payer_id, u.period) = (a.payer_id, a.period))
       END;

-- name: held
-- Open jobs that this process admitted and that no worker has or will have.
SELECT id, attempt, object_key FROM job
 WHERE server_id = $1 AND status IN ('Pending', 'Processing') AND handover IS NULL AND NOT is_alive(worker_id, $2::interval);

-- name: claim
-- Give jobs to a worker in new attempts, or say why not; see the function. Unless $11, a crash may undo these attempts until a
-- later commit of the worker, but not the end of a job that was given up.
WITH claim AS MATERIALIZED (SELECT * FROM claim_jobs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10))
SELECT claim.*
  FROM claim, (SELECT CASE WHEN NOT $11 AND bool_and(verdict <> 'given up') THEN set_config('synchronous_commit', 'off', true) END
                 FROM claim) AS hurry;

-- name: unreadable
-- The open job that this message has handed over, if no living worker has it or reads messages of its version. The message was
-- recorded, or has the seal of the job: see `claim_jobs`.
SELECT id, attempt, object_key FROM job
 WHERE id = $1 AND (handover = $2 OR sha256(convert_to(coalesce(admitted_key, object_key), 'UTF8') || $5) = $6)
   AND completed_at IS NULL AND NOT is_alive(worker_id, $4::interval)
   AND NOT EXISTS (SELECT FROM server
                    WHERE formats IS NOT NULL AND heartbeat_at >= service_time() - $4::interval
                      AND $3 = ANY (coalesce(reads, '{2}')));

-- name: record_begin
-- Record that a converter is about to begin on an open job: if the worker dies then, the job may be the cause.
UPDATE job SET status = 'Processing' WHERE id = $1 AND attempt = $2 AND completed_at IS NULL RETURNING true;

-- name: count_failure
-- Count an attempt at an open job that a fault of the service has ended, and return how many there are.
UPDATE job SET failed_attempts = failed_attempts + 1 WHERE id = $1 AND attempt = $2 AND completed_at IS NULL
RETURNING failed_attempts;

-- name: claimed
-- Open jobs that this process claimed.
SELECT id, attempt, object_key FROM job WHERE worker_id = $1 AND status IN ('Pending', 'Processing');

-- name: superseded
-- Those of these open jobs that another process has claimed meanwhile.
SELECT id FROM job WHERE id = ANY($1) AND completed_at IS NULL AND worker_id IS NOT NULL AND worker_id <> $2;

-- name: give_back
-- Give up a claim, for another worker.
UPDATE job SET worker_id = NULL, status = 'Pending', stage = NULL
 WHERE id = $1 AND attempt = $2 AND worker_id = $3 AND completed_at IS NULL
RETURNING true;

-- name: record_input
-- Record the key under which the input of an open job is about to be stored.
UPDATE job SET input_key = $2 WHERE id = $1 AND completed_at IS NULL RETURNING true;

-- name: hand_over
-- Record what workers are told, once the input is in the store.
UPDATE job SET handover = $2 WHERE id = $1 AND completed_at IS NULL RETURNING true;

-- name: handed_over
-- The next jobs, in their order, that were handed over, that no living worker has, and whose gateway is gone.
SELECT id, handover, account_id, created_at, input_size_bytes FROM job
 WHERE completed_at IS NULL AND handover IS NOT NULL AND id > $1
   AND NOT is_alive(worker_id, $2::interval) AND NOT is_alive(server_id, $2::interval)
 ORDER BY id LIMIT $3;

-- name: dropped
-- Jobs that this process has handed over, that no living worker has, and that are not among those that it still knows.
-- The many that it knows are hashed; an array would be searched from its beginning for each job.
SELECT id, handover, account_id, created_at, input_size_bytes FROM job
 WHERE completed_at IS NULL AND handover IS NOT NULL AND server_id = $1
   AND id NOT IN (SELECT unnest($2::uuid[])) AND NOT is_alive(worker_id, $3::interval)
 ORDER BY id LIMIT $4;

-- name: count_handed_over
-- How many open jobs were handed over.
SELECT count(*) FROM job WHERE completed_at IS NULL AND handover IS NOT NULL;

-- name: backlog
-- Open jobs that no living process works on, how long the first of them has waited, and how many seconds converters will
-- take for all of them: as long as for the last jobs of the same format and size, or else for any, or a second.
WITH living AS (
    SELECT id FROM server WHERE heartbeat_at >= service_time() - $1::interval
), waiting AS (
    SELECT input_format, input_size_bytes > $2 AS is_large, count(*) AS jobs, min(created_at) AS since
      FROM job
     WHERE status IN ('Pending', 'Processing')
       AND CASE WHEN worker_id IS NULL THEN status = 'Pending' ELSE worker_id <> ALL (ARRAY(SELECT id FROM living)) END
     GROUP BY 1, 2
), recent AS (
    SELECT input_format, input_size_bytes > $2 AS is_large, processing_time_ms / 1000.0 AS seconds
      FROM job
     WHERE completed_at IS NOT NULL AND status <> 'Failed' AND processing_time_ms IS NOT NULL
     ORDER BY id DESC LIMIT $3
), usual AS (
    SELECT input_format, is_large, avg(seconds) AS seconds FROM recent GROUP BY 1, 2
)
SELECT coalesce(sum(w.jobs), 0)::bigint AS jobs,
       coalesce(extract(epoch FROM service_time() - min(w.since)), 0)::float8 AS age_seconds,
       coalesce(sum(w.jobs * coalesce(u.seconds, (SELECT avg(seconds) FROM recent), 1)), 0)::float8 AS converter_seconds
  FROM waiting w LEFT JOIN usual u USING (input_format, is_large);

-- name: inputs_left
-- Inputs of jobs that have ended, in random order, as outputs.
SELECT id, input_key FROM job WHERE completed_at IS NOT NULL AND input_key IS NOT NULL ORDER BY random() LIMIT $1;

-- name: forget_inputs
-- Their inputs are gone. A request to store one that was repeated may arrive later, as that of a result: see `expire`.
WITH late AS (
    INSERT INTO late_object (object_key, given_up_at, next_at)
    SELECT input_key, service_time() - interval '29 days 23 hours', service_time() + interval '20 minutes'
      FROM job WHERE id = ANY($1) AND handover IS NOT NULL AND created_at > service_time() - interval '20 minutes'
    ON CONFLICT DO NOTHING
)
UPDATE job SET input_key = NULL, handover = NULL WHERE id = ANY($1);

-- name: forget_servers
-- Delete processes whose lease has expired, also by the time $2 that the asking process counts, and that have no open
-- jobs, and say which of them were workers.
DELETE FROM server s
 WHERE s.heartbeat_at < least(service_time(), $2::timestamptz) - $1::interval
   AND NOT EXISTS (SELECT FROM job j WHERE j.server_id = s.id AND j.status IN ('Pending', 'Processing'))
RETURNING formats IS NOT NULL AS is_worker;

-- name: lead
-- Take or renew the lease on a task that one process suffices for; returns nothing while another process holds it. One that
-- would end later than a new one is from before the clock was set back.
INSERT INTO chore_lease AS c (chore, server_id, held_until) VALUES ($1, $2, service_time() + $3::interval)
ON CONFLICT (chore) DO UPDATE SET server_id = excluded.server_id, held_until = excluded.held_until
 WHERE c.server_id = excluded.server_id OR c.held_until <= service_time() OR c.held_until > excluded.held_until
RETURNING true;

-- name: disposable
-- Outputs to delete: past their retention, or left by a job that failed. They come in random order, so that those that
-- cannot be deleted leave the others their turn. `$2` is the time by all clocks that the process knows: an output that is old
-- by a clock that has just jumped is kept.
SELECT id, object_key FROM job
 WHERE (status = 'Completed' AND expires_at <= least(service_time(), $2) - $1::interval)
    OR (status = 'Failed' AND object_key IS NOT NULL)
 ORDER BY random() LIMIT $3;

-- name: expire
-- End the retention of an output now, and return the key of its preview, if it has one. What was charged stays.
-- A request to store the output that got no answer in time, and was repeated, may arrive later: as long as stores accept
-- its signature, which is a quarter of an hour. What appears by then is deleted. The key counts as given up almost
-- `mark_late`'s 30 days ago, so that the check after that one forgets it.
WITH late AS (
    INSERT INTO late_object (object_key, given_up_at, next_at)
    SELECT object_key, service_time() - interval '29 days 23 hours', service_time() + interval '20 minutes'
      FROM job WHERE id = $1 AND status = 'Completed' AND completed_at > service_time() - interval '20 minutes'
    ON CONFLICT DO NOTHING
)
UPDATE job SET expires_at = least(expires_at, service_time()) WHERE id = $1 AND status = 'Completed'
RETURNING preview_key;

-- name: mark_disposed
-- Record that the outputs of these jobs were deleted.
UPDATE job SET status = CASE status WHEN 'Completed' THEN 'Expired' ELSE status END, object_key = NULL
 WHERE id = ANY($1) AND object_key IS NOT NULL;

-- name: late_objects
-- Abandoned keys that are due for deleting whatever has appeared under them, in random order, as outputs.
SELECT object_key FROM late_object WHERE next_at <= service_time() ORDER BY random() LIMIT $1;

-- name: mark_late
-- Record that nothing is stored under these keys. The next check is due after as long as they have been abandoned, at most a
-- day; after a month there is none.
WITH forgotten AS (
    DELETE FROM late_object WHERE object_key = ANY($1) AND given_up_at < service_time() - interval '30 days'
)
UPDATE late_object SET next_at = service_time() + least(service_time() - given_up_at + interval '1 minute', interval '1 day')
 WHERE object_key = ANY($1) AND given_up_at >= service_time() - interval '30 days';
