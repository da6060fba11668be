-- name: find_key
-- The account behind a key that is not revoked, and what its plan allows in a month.
SELECT k.id AS key_id, k.account_id, n.monthly_conversions, n.monthly_data_bytes
  FROM api_key k JOIN account a ON a.id = k.account_id JOIN payer p ON p.id = a.payer_id LEFT JOIN plan n ON n.id = p.plan_id
 WHERE k.key_hash = $1 AND k.revoked_at IS NULL;

-- name: find_caller
-- An account that a trusted gateway names, in the form of find_key.
SELECT NULL::uuid AS key_id, a.id AS account_id, n.monthly_conversions, n.monthly_data_bytes
  FROM account a JOIN payer p ON p.id = a.payer_id LEFT JOIN plan n ON n.id = p.plan_id
 WHERE a.id = $1;

-- name: create_organization
-- An organisation; its name is its own.
INSERT INTO organization (id, name, created_at) VALUES ($1, $2, $3);

-- name: find_organization
-- By id or by name, with the payer of its members.
SELECT o.id, o.name, p.id AS payer_id, p.plan_id
  FROM organization o JOIN payer p ON p.organization_id = o.id
 WHERE o.id::text = $1 OR o.name = $1;

-- name: create_payer
-- Who is charged: a plan's or a wallet's holder.
INSERT INTO payer (id, organization_id, plan_id, wallet_cents) VALUES ($1, $2, $3, $4);

-- name: create_account
-- An account that draws on a payer.
INSERT INTO account (id, name, payer_id, created_at) VALUES ($1, $2, $3, $4);

-- name: create_key
-- A key, stored as its hash.
INSERT INTO api_key (id, account_id, key_hash, created_at) SELECT $1, a.id, $3, $4 FROM account a WHERE a.id = $2
RETURNING id;

-- name: revoke_key
-- Revoked keys stay, so that their history does.
UPDATE api_key SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING account_id;

-- name: find_account
-- An account with what it draws on.
SELECT a.id, a.name, a.may_convert, a.payer_id, p.organization_id, p.plan_id, p.wallet_cents, p.past_due, a.storage_region,
       coalesce(n.storage_region_choice, false) AS storage_region_choice
  FROM account a JOIN payer p ON p.id = a.payer_id LEFT JOIN plan n ON n.id = p.plan_id WHERE a.id = $1;

-- name: find_account_by_name
-- The oldest account of this name.
SELECT a.id FROM account a WHERE a.name = $1 ORDER BY a.created_at LIMIT 1;

-- name: set_may_convert
-- Whether the account may convert at all.
UPDATE account SET may_convert = $2 WHERE id = $1;

-- name: set_storage_region
-- Where the account's outputs are kept; '' is home.
UPDATE account SET storage_region = $2 WHERE id = $1;

-- name: set_past_due
-- Whether the payer's payment is past due.
UPDATE payer SET past_due = $2 WHERE id = $1;

-- name: set_plan
-- Another plan for a payer that has one.
UPDATE payer SET plan_id = $2 WHERE id = $1 AND plan_id IS NOT NULL;

-- name: move_account
-- Let an account draw on another payer.
UPDATE account SET payer_id = $2 WHERE id = $1;

-- name: lock_wallet
-- What is free to spend in a wallet, held until this transaction ends.
SELECT wallet_cents FROM payer WHERE id = $1 FOR UPDATE;

-- name: set_wallet
-- What is free to spend in a wallet.
UPDATE payer SET wallet_cents = $2 WHERE id = $1;

-- name: credit_wallet
-- Credit that entered (or left) a wallet by hand.
INSERT INTO wallet_credit (payer_id, cents, created_at) VALUES ($1, $2, $3);
