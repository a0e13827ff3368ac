-- Runs that no process does, and what was said in them.

ALTER TABLE runs ADD COLUMN is_direct boolean NOT NULL DEFAULT false;

-- The exact turns, with whatever secrets are in them: only whoever holds the run's lease reads them.
CREATE TABLE turns (
    run     text COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number  bigint NOT NULL,
    -- 0 for what was said in the runs whose conversation goes on.
    attempt bigint NOT NULL,
    content text NOT NULL,
    at      bigint NOT NULL,
    PRIMARY KEY (run, number)
);
