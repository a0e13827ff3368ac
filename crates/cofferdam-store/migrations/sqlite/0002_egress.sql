-- What runs spend at the model, and what they may reach beyond their request.

CREATE TABLE model_calls (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    run            TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    attempt        INTEGER NOT NULL,
    model          TEXT NOT NULL,
    begun_at       INTEGER NOT NULL,
    ended_at       INTEGER,
    -- Reserved until the call has ended, spent from then on: a call that never ended counts as reserved.
    cost_micro_usd INTEGER NOT NULL,
    tokens         INTEGER NOT NULL,
    -- How it failed, if it did.
    trouble        TEXT
) STRICT;

CREATE INDEX model_calls_by_run ON model_calls (run, attempt, id);

CREATE TABLE allowances (
    run      TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    rule     TEXT NOT NULL,
    added_at INTEGER NOT NULL,
    PRIMARY KEY (run, rule)
) STRICT;

-- Which budget was found spent, once one was.
ALTER TABLE runs ADD COLUMN budget_exceeded TEXT;
