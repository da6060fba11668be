-- What a worker can read and write, so that gateways need no GDAL to know; null for other processes.
ALTER TABLE server ADD COLUMN formats jsonb;
