-- name: look
-- What an operator must know of the server.
SELECT current_setting('server_version') AS version, current_setting('server_version_num') AS version_number,
       (SELECT name FROM migration ORDER BY number DESC LIMIT 1) AS migration, clock_timestamp() AS clock,
       current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('default_transaction_isolation') AS isolation, current_setting('transaction_read_only') AS read_only,
       current_setting('max_connections') AS max_connections, (SELECT sum(numbackends) FROM pg_stat_database) AS used_connections;
