-- Many nodes on one queue: what decides who takes which run, who the nodes are, and who may ask.

-- Copies of what the request says, so that claiming never reads a request that it does not take.
ALTER TABLE runs ADD COLUMN role TEXT NOT NULL DEFAULT 'worker';
ALTER TABLE runs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN lane TEXT;
ALTER TABLE runs ADD COLUMN project TEXT;
ALTER TABLE runs ADD COLUMN agent TEXT;
ALTER TABLE runs ADD COLUMN place TEXT;
ALTER TABLE runs ADD COLUMN mode TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN timeout_ms INTEGER NOT NULL DEFAULT 0;
-- Messages to one agent, in order.
ALTER TABLE runs ADD COLUMN conversation TEXT;
-- The folder that the run works in itself, with a slash at its end.
ALTER TABLE runs ADD COLUMN direct_path TEXT;
ALTER TABLE runs ADD COLUMN replay_of TEXT;
-- Which state folder's node holds the lease.
ALTER TABLE runs ADD COLUMN lease_place TEXT;

UPDATE runs SET
    mode = coalesce(request ->> '$.policy.mode', ''),
    timeout_ms = coalesce(request ->> '$.policy.timeout_ms', 0),
    conversation = request ->> '$.conversation.agent',
    direct_path = CASE WHEN request ->> '$.workspace' = 'direct' THEN (request ->> '$.source.path') || '/' END,
    replay_of = request ->> '$.replay_of';

DROP INDEX runs_by_replay;
CREATE INDEX runs_by_replay ON runs (replay_of) WHERE replay_of IS NOT NULL;
CREATE INDEX runs_waiting ON runs (priority DESC, created_at, id) WHERE state = 'queued';
CREATE INDEX runs_under_way ON runs (lane, project, agent) WHERE state = 'running';
CREATE INDEX runs_by_conversation ON runs (conversation) WHERE conversation IS NOT NULL;
CREATE INDEX runs_by_project ON runs (project, created_at, id) WHERE project IS NOT NULL;

CREATE TABLE nodes (
    id         TEXT PRIMARY KEY NOT NULL,
    place      TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    report     TEXT NOT NULL
) STRICT;

CREATE TABLE projects (
    id              TEXT PRIMARY KEY NOT NULL,
    name            TEXT NOT NULL UNIQUE,
    project         TEXT NOT NULL,
    max_concurrency INTEGER,
    created_at      INTEGER NOT NULL
) STRICT;

-- A key itself is nowhere: whoever reads the database can open nothing with it.
CREATE TABLE keys (
    id         TEXT PRIMARY KEY NOT NULL,
    name       TEXT NOT NULL,
    sha256     TEXT NOT NULL UNIQUE,
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER,
    revoked_at INTEGER
) STRICT;

-- Who changed what through the service.
CREATE TABLE audit (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    data    TEXT NOT NULL
) STRICT;
