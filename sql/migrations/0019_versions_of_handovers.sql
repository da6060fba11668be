-- Which versions of handovers a worker reads. A job that was promised by a version whose messages no living worker reads ends,
-- instead of waiting without end.
ALTER TABLE server ADD COLUMN reads int[]; -- null: those of version 2
