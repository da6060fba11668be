-- The object by which each region of the store shows that it belongs to this database, so that a process with other settings
-- does not take what it does not find there for deleted. Two databases that share a bucket have one mark each.
CREATE TABLE store_mark (
    region    text PRIMARY KEY,   -- empty: home
    mark      text NOT NULL,
    stored_at timestamptz         -- when it was last stored; null if it never was
);
