-- How many attempts of a job a fault of the service has ended, so that it is not tried without end. The number of an attempt
-- does not say that: workers also return jobs that they have claimed, for instance to make room for one that runs alone.
ALTER TABLE job ADD COLUMN failed_attempts int NOT NULL DEFAULT 0;
