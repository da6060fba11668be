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

-- name: limit_waiting
-- How long the statements of this transaction may wait for a lock.
SELECT set_config('lock_timeout', $1, true);

-- name: lock_administration
-- One change of accounts and organisations at a time, until this transaction ends.
SELECT pg_advisory_xact_lock(hashtextextended('geomill.administration', 0));

-- name: create_organization
-- An organisation; its name is its own.
INSERT INTO organization (id, name, created_at) VALUES ($1, $2, $3);

-- name: delete_organization
-- An organisation that nobody belongs to.
DELETE FROM organization WHERE id = $1;

-- name: find_organization
-- By id or by name, with the payer of its members.
SELECT o.id, o.name, p.id AS payer_id, p.plan_id
  FROM organization o JOIN payer p ON p.organization_id = o.id
 WHERE o.id::text = $1 OR o.name = $1;

-- name: create_payer
-- Who is charged: an account or an organisation, on a plan or with prepaid credit.
INSERT INTO payer (id, account_id, organization_id, plan_id, wallet_cents) VALUES ($1, $2, $3, $4, $5);

-- name: create_account
-- An account that draws on a payer.
INSERT INTO account (id, name, payer_id, plan_payer_id, created_at)
SELECT $1, $2, p.id, CASE WHEN p.plan_id IS NOT NULL THEN p.id END, $4 FROM payer p WHERE p.id = $3;

-- name: create_key
-- A key, stored as its hash.
INSERT INTO api_key (id, account_id, key_hash, created_at) SELECT $1, a.id, $3, $4 FROM account a WHERE a.id = $2
RETURNING id;

-- name: revoke_key
-- Revoked keys stay, so that their history does.
UPDATE api_key SET revoked_at = coalesce(revoked_at, $2) WHERE id = $1 RETURNING account_id;

-- name: find_account
-- An account with what it draws on, and the prepaid credit that is kept while it has a plan.
SELECT a.id, a.name, a.may_convert, a.payer_id, p.organization_id, p.plan_id, p.wallet_cents, p.past_due, a.storage_region,
       coalesce(n.storage_region_choice, false) AS storage_region_choice,
       CASE WHEN p.plan_id IS NOT NULL THEN w.wallet_cents END AS kept_cents
  FROM account a JOIN payer p ON p.id = a.payer_id LEFT JOIN plan n ON n.id = p.plan_id
  LEFT JOIN payer w ON w.account_id = a.id AND w.plan_id IS NULL
 WHERE a.id = $1;

-- name: find_payers
-- What an account draws on, with a plan and without; its own payers; and whether anybody else belongs to its organisation.
SELECT a.name, a.payer_id, a.plan_payer_id, o.id AS organization_id, o.name AS organization, n.owner,
       own.id AS own_payer_id, own_plan.owner AS own_owner, w.id AS wallet_payer_id,
       EXISTS (SELECT FROM account m WHERE m.plan_payer_id = p.id AND m.id <> a.id) AS has_colleagues
  FROM account a LEFT JOIN payer p ON p.id = a.plan_payer_id LEFT JOIN organization o ON o.id = p.organization_id
  LEFT JOIN plan n ON n.id = p.plan_id
  LEFT JOIN payer own ON own.account_id = a.id AND own.plan_id IS NOT NULL
  LEFT JOIN plan own_plan ON own_plan.id = own.plan_id
  LEFT JOIN payer w ON w.account_id = a.id AND w.plan_id IS NULL
 WHERE a.id = $1;

-- name: set_may_convert
-- Whether the account may convert at all.
UPDATE account SET may_convert = $2 WHERE id = $1;

-- name: set_storage_region
-- Where the account's outputs are kept; '' is home.
UPDATE account SET storage_region = $2 WHERE id = $1;

-- name: set_past_due
-- A payment is past due for whom an account draws on; or it is not, and then for none of those that are the account's alone.
UPDATE payer p SET past_due = $2
  FROM account a
 WHERE a.id = $1
   AND (p.id = a.payer_id
        OR NOT $2 AND a.payer_id IN (SELECT payers_alone_of(a.id)) AND p.id IN (SELECT payers_alone_of(a.id)));

-- name: carry_debt
-- What is due of one of an account's own payers is due on the one that it draws on now.
UPDATE payer p SET past_due = true
  FROM account a
 WHERE a.id = $1 AND p.id = a.payer_id AND p.id IN (SELECT payers_alone_of(a.id)) AND NOT p.past_due
   AND EXISTS (SELECT FROM payer o WHERE o.past_due AND o.id IN (SELECT payers_alone_of(a.id)));

-- name: set_plan
-- Another plan for a payer that has one.
UPDATE payer SET plan_id = $2 WHERE id = $1 AND plan_id IS NOT NULL;

-- name: give_to_organization
-- An account's own payer becomes that of an organisation which it founds.
UPDATE payer SET account_id = NULL, organization_id = $2 WHERE id = $1;

-- name: give_to_account
-- The payer of an organisation that is dissolved becomes its last member's own.
UPDATE payer SET account_id = $2, organization_id = NULL WHERE id = $1;

-- name: draw_on
-- Let an account draw on a payer now, and on another one when it has a plan.
UPDATE account SET payer_id = $2, plan_payer_id = $3 WHERE id = $1;

-- name: lock_wallet
-- What is free to spend in the wallet that an account draws on, held until this transaction ends.
SELECT p.id, p.wallet_cents FROM payer p JOIN account a ON a.payer_id = p.id
 WHERE a.id = $1 AND p.wallet_cents IS NOT NULL FOR UPDATE OF p;

-- name: set_wallet
-- What is free to spend in a wallet.
UPDATE payer SET wallet_cents = $2 WHERE id = $1;

-- name: credit_wallet
-- Credit that entered (or left) a wallet by hand.
INSERT INTO wallet_credit (payer_id, cents, created_at) VALUES ($1, $2, $3);
