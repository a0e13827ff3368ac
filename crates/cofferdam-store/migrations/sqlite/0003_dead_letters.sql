-- Runs that failed for good, replays of them, and who waits for a free slot.

-- The letter as its file has it, without secrets: whoever writes the file later may not know what to take out.
CREATE TABLE dead_letters (
    run       TEXT PRIMARY KEY NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    failed_at INTEGER NOT NULL,
    letter    TEXT NOT NULL
) STRICT;

CREATE INDEX dead_letters_by_age ON dead_letters (failed_at, run);

CREATE INDEX runs_by_replay ON runs (json_extract(request, '$.replay_of'))
    WHERE json_extract(request, '$.replay_of') IS NOT NULL;

-- When somebody last tried to claim the queued run and found no free slot.
ALTER TABLE runs ADD COLUMN waits_at_ms INTEGER;
