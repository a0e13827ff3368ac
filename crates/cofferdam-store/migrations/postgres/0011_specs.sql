-- Specs: pieces of work that are done in phases, and the runs that do them.

CREATE TABLE specs (
    id             text COLLATE "C" PRIMARY KEY NOT NULL,
    owner          text COLLATE "C" NOT NULL,
    -- It may have been removed since.
    project        text COLLATE "C",
    title          text NOT NULL,
    description    text NOT NULL,
    phases_version bigint NOT NULL,
    plan           text NOT NULL,
    -- The number of the last row of spec_versions.
    version        bigint NOT NULL,
    -- Counts every change, so that whoever decides by what they read can say which one that was.
    revision       bigint NOT NULL,
    archived       boolean NOT NULL,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL
);

CREATE INDEX specs_by_age ON specs (created_at, id);
CREATE INDEX specs_by_owner ON specs (owner, created_at, id);

CREATE TABLE spec_phases (
    spec       text COLLATE "C" NOT NULL REFERENCES specs (id) ON DELETE CASCADE,
    phase      text COLLATE "C" NOT NULL,
    state      text COLLATE "C" NOT NULL CHECK (state IN ('open', 'passed', 'failed')),
    tries      bigint NOT NULL,
    output     text,
    score      double precision,
    reasons    text NOT NULL,
    decision   text,
    -- It may have been removed since.
    run        text COLLATE "C",
    updated_at bigint NOT NULL,
    PRIMARY KEY (spec, phase)
);

CREATE TABLE spec_versions (
    spec        text COLLATE "C" NOT NULL REFERENCES specs (id) ON DELETE CASCADE,
    number      bigint NOT NULL,
    title       text NOT NULL,
    description text NOT NULL,
    -- The phase whose output was written, if one was.
    phase       text COLLATE "C",
    output      text,
    actor       text NOT NULL,
    at          bigint NOT NULL,
    PRIMARY KEY (spec, number)
);

ALTER TABLE runs ADD COLUMN spec text COLLATE "C";

CREATE INDEX runs_by_spec ON runs (spec, accepted) WHERE spec IS NOT NULL;
-- Whoever starts a run of a spec at the same time as somebody else finds that one.
CREATE UNIQUE INDEX one_live_run_of_spec ON runs (spec) WHERE spec IS NOT NULL AND state IN ('queued', 'running');
