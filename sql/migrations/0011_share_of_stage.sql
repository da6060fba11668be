-- Which share of its stage is done, from 0 to 1, where the converter reports it. Without a stage it says nothing.
ALTER TABLE job ADD COLUMN stage_share double precision;
