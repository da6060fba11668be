-- In a transaction of its own: while these read the whole table, jobs can still be read, which a changed table does not allow.
CREATE INDEX job_handed_over ON job (id) WHERE completed_at IS NULL AND handover IS NOT NULL;
CREATE UNIQUE INDEX job_input ON job (input_key) WHERE input_key IS NOT NULL;
