-- name: claim
-- Take a key that is free, past its time, or left by a dead process before any of its jobs existed.
INSERT INTO idempotency_key AS k (account_id, key, fingerprint, server_id, job_ids, created_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (account_id, key) DO UPDATE
   SET fingerprint = excluded.fingerprint, server_id = excluded.server_id, job_ids = excluded.job_ids,
       created_at = excluded.created_at
 WHERE k.created_at <= $7
    OR (NOT EXISTS (SELECT FROM job j WHERE j.id = ANY(k.job_ids))
        AND NOT EXISTS (SELECT FROM server s WHERE s.id = k.server_id AND s.heartbeat_at >= $8))
RETURNING fingerprint, job_ids, false AS ended;

-- name: find
-- The request that has the key; it has ended when none of its jobs is open and, if some are missing, its process is dead.
SELECT k.fingerprint, k.job_ids,
       NOT EXISTS (SELECT FROM job j WHERE j.id = ANY(k.job_ids) AND j.status IN ('Pending', 'Processing'))
       AND ((SELECT count(*) FROM job j WHERE j.id = ANY(k.job_ids)) = cardinality(k.job_ids)
            OR NOT EXISTS (SELECT FROM server s WHERE s.id = k.server_id AND s.heartbeat_at >= $3)) AS ended
  FROM idempotency_key k WHERE k.account_id = $1 AND k.key = $2;

-- name: give_back
-- A request that was refused before it had any job frees its key.
DELETE FROM idempotency_key k
 WHERE k.account_id = $1 AND k.key = $2 AND k.job_ids = $3
   AND NOT EXISTS (SELECT FROM job j WHERE j.id = ANY(k.job_ids));

-- name: forget
-- Keys past their time.
DELETE FROM idempotency_key WHERE created_at <= $1;
