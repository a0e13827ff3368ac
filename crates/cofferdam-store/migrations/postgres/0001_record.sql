-- The record as SQLite's schema has it in version 4. Ids and names are ordered by their bytes, as they are there,
-- whatever the database's language is. JSON is kept as text: `jsonb` refuses the NUL characters that agents print.

CREATE TABLE runs (
    id                  text COLLATE "C" PRIMARY KEY,
    -- The order of acceptance. Messages to one agent are accepted one after the other.
    accepted            bigint GENERATED ALWAYS AS IDENTITY,
    request             text NOT NULL,
    idempotency_key     text COLLATE "C" UNIQUE,
    state               text COLLATE "C" NOT NULL
        CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out')),
    claimable_by        text COLLATE "C",
    not_before_ms       bigint NOT NULL,
    -- Counted at claim, so that a run that kills its node still runs out of attempts.
    attempts            bigint NOT NULL DEFAULT 0,
    -- The fencing token: grows with every claim and adoption and never goes back.
    token               bigint NOT NULL DEFAULT 0,
    lease_node          text COLLATE "C",
    lease_place         text COLLATE "C",
    lease_expires_at_ms bigint,
    last_seq            bigint NOT NULL DEFAULT 0,
    cancel_requested_at bigint,
    outcome             text,
    dead_letter         boolean NOT NULL DEFAULT false,
    budget_exceeded     text,
    -- When somebody last tried to claim the queued run and found no free slot.
    waits_at_ms         bigint,
    created_at          bigint NOT NULL,
    updated_at          bigint NOT NULL,
    finished_at         bigint,
    -- Copies of what the request says, so that claiming never reads a request that it does not take.
    role                text COLLATE "C" NOT NULL,
    priority            bigint NOT NULL,
    lane                text COLLATE "C",
    project             text COLLATE "C",
    agent               text COLLATE "C",
    place               text COLLATE "C",
    mode                text COLLATE "C" NOT NULL,
    timeout_ms          bigint NOT NULL,
    -- Messages to one agent, in order.
    conversation        text COLLATE "C",
    -- The folder that the run works in itself, with a slash at its end.
    direct_path         text COLLATE "C",
    replay_of           text COLLATE "C",
    CHECK ((state = 'running') = (lease_node IS NOT NULL)),
    CHECK ((state IN ('queued', 'running')) = (finished_at IS NULL))
) WITH (
    -- A run's row changes with every batch of events: room on its page saves an entry in every index, and rows that
    -- were left behind must not wait until a fifth of the table is dead.
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05
);

CREATE INDEX runs_by_state ON runs (state, created_at, id);
CREATE INDEX runs_by_age ON runs (created_at, id);
CREATE INDEX runs_waiting ON runs (priority DESC, created_at, id) WHERE state = 'queued';
CREATE INDEX runs_under_way ON runs (lane, project, agent) WHERE state = 'running';
CREATE INDEX runs_by_conversation ON runs (conversation, accepted) WHERE conversation IS NOT NULL;
CREATE INDEX runs_by_project ON runs (project, created_at, id) WHERE project IS NOT NULL;
CREATE INDEX runs_by_replay ON runs (replay_of) WHERE replay_of IS NOT NULL;
CREATE INDEX runs_by_end ON runs (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE attempts (
    run        text COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    number     bigint NOT NULL,
    node       text COLLATE "C" NOT NULL,
    seal       text,
    outcome    text,
    started_at bigint NOT NULL,
    ended_at   bigint,
    PRIMARY KEY (run, number)
);

CREATE TABLE events (
    run        text COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    seq        bigint NOT NULL,
    at         bigint NOT NULL,
    type       text COLLATE "C" NOT NULL,
    attempt    bigint,
    worker_seq bigint,
    data       text NOT NULL,
    PRIMARY KEY (run, seq)
);

-- Reading a worker's output twice adds nothing.
CREATE UNIQUE INDEX events_by_worker_seq ON events (run, attempt, worker_seq) WHERE worker_seq IS NOT NULL;

CREATE TABLE messages (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run        text COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    kind       text NOT NULL CHECK (kind IN ('steer', 'follow_up', 'interrupt')),
    content    text NOT NULL,
    state      text NOT NULL CHECK (state IN ('accepted', 'delivered', 'refused')),
    reason     text,
    created_at bigint NOT NULL,
    settled_at bigint
);

CREATE INDEX messages_by_run ON messages (run, state, id);

CREATE TABLE artifacts (
    run     text COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    attempt bigint NOT NULL,
    name    text COLLATE "C" NOT NULL,
    -- Bytes, because a path need not be text.
    path    bytea NOT NULL,
    bytes   bigint NOT NULL,
    sha256  text NOT NULL,
    PRIMARY KEY (run, attempt, name)
);

CREATE TABLE model_calls (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run            text COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    attempt        bigint NOT NULL,
    model          text NOT NULL,
    begun_at       bigint NOT NULL,
    ended_at       bigint,
    -- Reserved until the call has ended, spent from then on: a call that never ended counts as reserved.
    cost_micro_usd bigint NOT NULL,
    tokens         bigint NOT NULL,
    -- How it failed, if it did.
    trouble        text
);

CREATE INDEX model_calls_by_run ON model_calls (run, attempt, id);

CREATE TABLE allowances (
    run      text COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    rule     text COLLATE "C" NOT NULL,
    added_at bigint NOT NULL,
    PRIMARY KEY (run, rule)
);

-- The letter as its file has it, without secrets: whoever writes the file later may not know what to take out.
CREATE TABLE dead_letters (
    run       text COLLATE "C" PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    failed_at bigint NOT NULL,
    letter    text NOT NULL
);

CREATE INDEX dead_letters_by_age ON dead_letters (failed_at, run);

CREATE TABLE nodes (
    id         text COLLATE "C" PRIMARY KEY,
    place      text COLLATE "C" NOT NULL,
    started_at bigint NOT NULL,
    seen_at    bigint NOT NULL,
    report     text NOT NULL
);

CREATE TABLE projects (
    id              text COLLATE "C" PRIMARY KEY,
    name            text COLLATE "C" NOT NULL UNIQUE,
    project         text NOT NULL,
    max_concurrency bigint,
    created_at      bigint NOT NULL
);

-- A key itself is nowhere: whoever reads the database can open nothing with it.
CREATE TABLE keys (
    id         text COLLATE "C" PRIMARY KEY,
    name       text NOT NULL,
    sha256     text COLLATE "C" NOT NULL UNIQUE,
    scopes     text NOT NULL,
    created_at bigint NOT NULL,
    used_at    bigint,
    revoked_at bigint
);

-- Who changed what through the service.
CREATE TABLE audit (
    seq     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      bigint NOT NULL,
    actor   text NOT NULL,
    action  text NOT NULL,
    subject text NOT NULL,
    data    text NOT NULL
);
