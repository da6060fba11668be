-- name: find_keys
-- Find the accounts of those of these keys that are not revoked, with the monthly allowances of their plans.
SELECT k.key_hash AS proof, k.id AS key_id, k.account_id, n.monthly_conversions, n.monthly_data_bytes
  FROM api_key k JOIN account a ON a.id = k.account_id JOIN payer p ON p.id = a.payer_id LEFT JOIN plan n ON n.id = p.plan_id
 WHERE k.key_hash = ANY($1) AND k.revoked_at IS NULL AND a.deleted_at IS NULL;

-- name: find_callers
-- Find accounts that a trusted gateway names; same columns as find_keys.
SELECT a.id AS proof, NULL::uuid AS key_id, a.id AS account_id, n.monthly_conversions, n.monthly_data_bytes
  FROM account a JOIN payer p ON p.id = a.payer_id LEFT JOIN plan n ON n.id = p.plan_id
 WHERE a.id = ANY($1) AND a.deleted_at IS NULL;

-- name: limit_waiting
-- Limit how long the statements of this transaction wait for a lock.
SELECT set_config('lock_timeout', $1, true);

-- name: lock_administration
-- Serialize changes of accounts and organizations until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('geomill.administration', 0));

-- name: create_organization
-- Create an organization with a unique name.
INSERT INTO organization (id, name, created_at) VALUES ($1, $2, $3);

-- name: delete_organization
-- Delete an organization without members.
DELETE FROM organization WHERE id = $1;

-- name: find_organization
-- Find an organization by id or name, with the payer of its members.
SELECT o.id, o.name, p.id AS payer_id, p.plan_id
  FROM organization o JOIN payer p ON p.organization_id = o.id
 WHERE o.id::text = $1 OR o.name = $1;

-- name: create_payer
-- Create the payer of an account or an organization, on a plan or with prepaid credit.
INSERT INTO payer (id, account_id, organization_id, plan_id, wallet_cents) VALUES ($1, $2, $3, $4, $5);

-- name: create_account
-- Create an account that is charged to a payer.
INSERT INTO account (id, name, payer_id, plan_payer_id, created_at)
SELECT $1, $2, p.id, CASE WHEN p.plan_id IS NOT NULL THEN p.id END, $4 FROM payer p WHERE p.id = $3;

-- name: create_key
-- Store a key as its hash.
INSERT INTO api_key (id, account_id, key_hash, created_at) SELECT $1, a.id, $3, $4 FROM account a WHERE a.id = $2 AND a.deleted_at IS NULL
RETURNING id;

-- name: revoke_key
-- Revoke a key; it stays, to preserve its history.
UPDATE api_key SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING account_id;

-- name: find_account
-- Find an account with its payer, and the prepaid credit that is kept while it has a plan.
SELECT a.id AS account_id, a.name, a.may_convert, p.organization_id, p.plan_id AS plan, p.wallet_cents, p.past_due,
       CASE WHEN n.storage_region_choice THEN a.storage_region END AS storage_region,
       CASE WHEN p.plan_id IS NOT NULL THEN w.wallet_cents END AS kept_wallet_cents
  FROM account a JOIN payer p ON p.id = a.payer_id LEFT JOIN plan n ON n.id = p.plan_id
  LEFT JOIN payer w ON w.account_id = a.id AND w.plan_id IS NULL
 WHERE a.id = $1 AND a.deleted_at IS NULL;

-- name: list_accounts
-- All accounts that were not deleted, with what their payers have used this month; the oldest first.
SELECT a.id AS account_id, a.name, a.created_at, p.organization_id, o.name AS organization, p.plan_id AS plan,
       b.used_conversions::int, b.used_bytes, b.wallet_cents, p.past_due, a.may_convert
  FROM account a JOIN payer p ON p.id = a.payer_id JOIN balance b ON b.payer_id = p.id
  LEFT JOIN organization o ON o.id = p.organization_id
 WHERE a.deleted_at IS NULL ORDER BY a.id;

-- name: list_keys
-- The keys of an account, revoked ones included as long as they are kept; the oldest first.
SELECT id AS key_id, created_at, revoked_at FROM api_key WHERE account_id = $1 ORDER BY id;

-- name: delete_account
-- Remove an account's name and access; its charges stay. Deleting it again changes nothing.
UPDATE account SET name = '', may_convert = false, deleted_at = coalesce(deleted_at, service_time()) WHERE id = $1
RETURNING id;

-- name: transactions_on_accounts
-- The other transactions that have read or changed an account and have not ended. Each keeps its lock of the table until then.
SELECT DISTINCT virtualtransaction FROM pg_locks
 WHERE locktype = 'relation' AND relation = 'account'::regclass AND granted AND pid <> pg_backend_pid()
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database());

-- name: revoke_keys
-- Revoke all keys of an account.
UPDATE api_key SET revoked_at = coalesce(revoked_at, service_time()) WHERE account_id = $1;

-- name: forget_requests
-- Delete the idempotency keys of an account.
DELETE FROM idempotency_key WHERE account_id = $1;

-- name: rename_alone
-- Remove the name of the organization whose last member the account was.
UPDATE organization o SET name = o.id::text
  FROM payer p JOIN account a ON a.plan_payer_id = p.id
 WHERE a.id = $1 AND p.organization_id = o.id
   AND NOT EXISTS (SELECT FROM account m WHERE m.plan_payer_id = p.id AND m.deleted_at IS NULL);

-- name: find_payers
-- Find the payers of an account with a plan and without, its own payers, and whether its organization has other members.
SELECT a.name, a.payer_id IS NOT DISTINCT FROM w.id AS on_wallet, a.plan_payer_id, o.id AS organization_id,
       o.name AS organization, n.owner, own.id AS own_payer_id, own_plan.owner AS own_owner, w.id AS wallet_payer_id,
       EXISTS (SELECT FROM account m
                WHERE m.plan_payer_id = p.id AND m.id <> a.id AND m.deleted_at IS NULL) AS has_colleagues
  FROM account a LEFT JOIN payer p ON p.id = a.plan_payer_id LEFT JOIN organization o ON o.id = p.organization_id
  LEFT JOIN plan n ON n.id = p.plan_id
  LEFT JOIN payer own ON own.account_id = a.id AND own.plan_id IS NOT NULL
  LEFT JOIN plan own_plan ON own_plan.id = own.plan_id
  LEFT JOIN payer w ON w.account_id = a.id AND w.plan_id IS NULL
 WHERE a.id = $1;

-- name: set_may_convert
-- Set whether the account may convert.
UPDATE account SET may_convert = $2 WHERE id = $1;

-- name: set_storage_region
-- Set the region of the account's outputs; '' is home.
UPDATE account SET storage_region = $2 WHERE id = $1;

-- name: set_past_due
-- Set whether a payment is past due for the payer of an account; if it is not, also for the account's own payers.
UPDATE payer p SET past_due = $2
  FROM account a
 WHERE a.id = $1
   AND (p.id = a.payer_id
        OR NOT $2 AND a.payer_id IN (SELECT payers_alone_of(a.id)) AND p.id IN (SELECT payers_alone_of(a.id)));

-- name: carry_debt
-- Transfer an amount due from the account's own payers to its current one.
UPDATE payer p SET past_due = true
  FROM account a
 WHERE a.id = $1 AND p.id = a.payer_id AND p.id IN (SELECT payers_alone_of(a.id)) AND NOT p.past_due
   AND EXISTS (SELECT FROM payer o WHERE o.past_due AND o.id IN (SELECT payers_alone_of(a.id)));

-- name: set_plan
-- Change the plan of a payer that has one.
UPDATE payer SET plan_id = $2 WHERE id = $1 AND plan_id IS NOT NULL;

-- name: give_to_organization
-- Transfer an account's own payer to an organization that it founds.
UPDATE payer SET account_id = NULL, organization_id = $2 WHERE id = $1;

-- name: give_to_account
-- Transfer the payer of a dissolved organization to its last member.
UPDATE payer SET account_id = $2, organization_id = NULL WHERE id = $1;

-- name: draw_on
-- Set the payer of an account, and its payer for when it has a plan.
UPDATE account SET payer_id = $2, plan_payer_id = $3 WHERE id = $1;

-- name: lock_wallet
-- Lock the wallet of an account until this transaction ends, and return its available credit.
SELECT p.id, p.wallet_cents FROM payer p JOIN account a ON a.payer_id = p.id
 WHERE a.id = $1 AND p.wallet_cents IS NOT NULL FOR UPDATE OF p;

-- name: set_wallet
-- Set the available credit of a wallet.
UPDATE payer SET wallet_cents = $2 WHERE id = $1;

-- name: credit_wallet
-- Record credit that was added to (or removed from) a wallet manually.
INSERT INTO wallet_credit (payer_id, cents, created_at) VALUES ($1, $2, $3);
