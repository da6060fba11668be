-- name: claim
-- Claim a key, or return why it cannot be claimed; see the function.
SELECT verdict, jobs FROM claim_key($1, $2, $3, $4, $5, $6, $7);

-- name: named_jobs
-- The jobs that exist under a key, in the order of their files.
SELECT j.id FROM idempotency_key k JOIN job j ON j.id = ANY(k.job_ids)
 WHERE k.account_id = $1 AND k.key = $2 ORDER BY array_position(k.job_ids, j.id);

-- name: prolong
-- Extend the claims of keys under which this process is still admitting files, except those that were taken over.
UPDATE idempotency_key k SET held_until = service_time() + $4::interval
  FROM unnest($1::uuid[], $2::text[], $3::uuid[]) AS mine(account_id, key, job_id)
 WHERE k.account_id = mine.account_id AND k.key = mine.key AND mine.job_id = ANY(k.job_ids);

-- name: give_back
-- Release the key of an interrupted request: delete it if it has no job, otherwise leave it for a retry to complete.
WITH forgotten AS (
    DELETE FROM idempotency_key k
     WHERE k.account_id = $1 AND k.key = $2 AND $3 = ANY(k.job_ids)
       AND NOT EXISTS (SELECT FROM job j WHERE j.id = ANY(k.job_ids))
)
UPDATE idempotency_key k SET held_until = service_time()
 WHERE k.account_id = $1 AND k.key = $2 AND $3 = ANY(k.job_ids)
   AND EXISTS (SELECT FROM job j WHERE j.id = ANY(k.job_ids));

-- name: forget
-- Delete expired keys; it is not later than $1.
DELETE FROM idempotency_key WHERE created_at <= least(service_time(), $1) - interval '24 hours';
