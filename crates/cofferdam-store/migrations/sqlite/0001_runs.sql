-- Runs, their attempts, and the numbered facts about them.

CREATE TABLE runs (
    id                  TEXT PRIMARY KEY NOT NULL,
    request             TEXT NOT NULL,
    idempotency_key     TEXT UNIQUE,
    state               TEXT NOT NULL
        CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out')),
    claimable_by        TEXT,
    not_before_ms       INTEGER NOT NULL,
    -- Counted at claim, so that a run that kills its node still runs out of attempts.
    attempts            INTEGER NOT NULL DEFAULT 0,
    -- The fencing token: grows with every claim and adoption and never goes back.
    token               INTEGER NOT NULL DEFAULT 0,
    lease_node          TEXT,
    lease_expires_at_ms INTEGER,
    last_seq            INTEGER NOT NULL DEFAULT 0,
    cancel_requested_at INTEGER,
    outcome             TEXT,
    dead_letter         INTEGER NOT NULL DEFAULT 0 CHECK (dead_letter IN (0, 1)),
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    finished_at         INTEGER,
    CHECK ((state = 'running') = (lease_node IS NOT NULL)),
    CHECK ((state IN ('queued', 'running')) = (finished_at IS NULL))
) STRICT;

CREATE INDEX runs_by_state ON runs (state, created_at, id);
CREATE INDEX runs_by_age ON runs (created_at, id);

CREATE TABLE attempts (
    run        TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    node       TEXT NOT NULL,
    seal       TEXT,
    outcome    TEXT,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    PRIMARY KEY (run, number)
) STRICT;

CREATE TABLE events (
    run        TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq        INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    type       TEXT NOT NULL,
    attempt    INTEGER,
    worker_seq INTEGER,
    data       TEXT NOT NULL,
    PRIMARY KEY (run, seq)
) STRICT;

-- Reading a worker's output twice adds nothing.
CREATE UNIQUE INDEX events_by_worker_seq ON events (run, attempt, worker_seq) WHERE worker_seq IS NOT NULL;

CREATE TABLE messages (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    run        TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    kind       TEXT NOT NULL CHECK (kind IN ('steer', 'follow_up', 'interrupt')),
    content    TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('accepted', 'delivered', 'refused')),
    reason     TEXT,
    created_at INTEGER NOT NULL,
    settled_at INTEGER
) STRICT;

CREATE INDEX messages_by_run ON messages (run, state, id);

CREATE TABLE artifacts (
    run     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    name    TEXT NOT NULL,
    -- Bytes, because a path need not be text.
    path    BLOB NOT NULL,
    bytes   INTEGER NOT NULL,
    sha256  TEXT NOT NULL,
    PRIMARY KEY (run, attempt, name)
) STRICT;
