-- A member that was deleted does not come back: the last of the others takes the use and the debt of the organization along.
CREATE OR REPLACE FUNCTION payers_alone_of(of_account uuid) RETURNS SETOF uuid LANGUAGE sql STABLE AS $$
    SELECT p.id FROM payer p WHERE p.account_id = of_account
    UNION
    SELECT a.plan_payer_id FROM account a
     WHERE a.id = of_account AND a.plan_payer_id IS NOT NULL
       AND NOT EXISTS (SELECT FROM account o
                        WHERE o.plan_payer_id = a.plan_payer_id AND o.id <> of_account AND o.deleted_at IS NULL)
$$;
