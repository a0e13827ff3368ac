-- Specs: pieces of work that are done in phases, and the runs that do them.

CREATE TABLE specs (
    id             TEXT PRIMARY KEY NOT NULL,
    owner          TEXT NOT NULL,
    -- It may have been removed since.
    project        TEXT,
    title          TEXT NOT NULL,
    description    TEXT NOT NULL,
    phases_version INTEGER NOT NULL,
    plan           TEXT NOT NULL,
    -- The number of the last row of spec_versions.
    version        INTEGER NOT NULL,
    -- Counts every change, so that whoever decides by what they read can say which one that was.
    revision       INTEGER NOT NULL,
    archived       INTEGER NOT NULL CHECK (archived IN (0, 1)),
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT;

CREATE INDEX specs_by_age ON specs (created_at, id);
CREATE INDEX specs_by_owner ON specs (owner, created_at, id);

CREATE TABLE spec_phases (
    spec       TEXT NOT NULL REFERENCES specs (id) ON DELETE CASCADE,
    phase      TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('open', 'passed', 'failed')),
    tries      INTEGER NOT NULL,
    output     TEXT,
    score      REAL,
    reasons    TEXT NOT NULL,
    decision   TEXT,
    -- It may have been removed since.
    run        TEXT,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (spec, phase)
) STRICT;

CREATE TABLE spec_versions (
    spec        TEXT NOT NULL REFERENCES specs (id) ON DELETE CASCADE,
    number      INTEGER NOT NULL,
    title       TEXT NOT NULL,
    description TEXT NOT NULL,
    -- The phase whose output was written, if one was.
    phase       TEXT,
    output      TEXT,
    actor       TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (spec, number)
) STRICT;

ALTER TABLE runs ADD COLUMN spec TEXT;

CREATE INDEX runs_by_spec ON runs (spec) WHERE spec IS NOT NULL;
-- Whoever starts a run of a spec at the same time as somebody else finds that one.
CREATE UNIQUE INDEX one_live_run_of_spec ON runs (spec) WHERE spec IS NOT NULL AND state IN ('queued', 'running');
