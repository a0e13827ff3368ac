-- What an operator changes while the service runs, and who set it last.
CREATE TABLE system_config (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL,
    actor TEXT NOT NULL,
    at BIGINT NOT NULL
);

-- Questions to nodes. A row is gone when its time is up: the deadline, or, for an answer that is shared, a while after it.
CREATE TABLE node_requests (
    id TEXT NOT NULL PRIMARY KEY,
    -- Whom it is for; NULL is any node.
    node TEXT,
    task TEXT NOT NULL,
    -- What tells equal questions, whose answer is shared; NULL is not shared.
    share TEXT UNIQUE,
    deadline BIGINT NOT NULL,
    -- When the row is gone.
    gone_at BIGINT NOT NULL,
    taken_by TEXT,
    answer TEXT
);
