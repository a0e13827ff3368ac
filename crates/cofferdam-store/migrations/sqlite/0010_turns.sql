-- Runs that no process does, and what was said in them.

ALTER TABLE runs ADD COLUMN is_direct INTEGER NOT NULL DEFAULT 0 CHECK (is_direct IN (0, 1));

-- The exact turns, with whatever secrets are in them: only whoever holds the run's lease reads them.
CREATE TABLE turns (
    run     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    -- 0 for what was said in the runs whose conversation goes on.
    attempt INTEGER NOT NULL,
    content TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;
