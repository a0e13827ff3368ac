-- What each service keeps running, and what an operator wants of it.

-- A supervisor, by the id of its node's name in its state folder.
CREATE TABLE services (
    id         TEXT PRIMARY KEY NOT NULL,
    place      TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    seen_at    INTEGER NOT NULL,
    report     TEXT NOT NULL
) STRICT;

CREATE TABLE processes (
    service TEXT NOT NULL,
    name    TEXT NOT NULL,
    desired TEXT NOT NULL CHECK (desired IN ('running', 'stopped')),
    -- Counts what was asked for, so that whoever asked can see that it was heard.
    asked   INTEGER NOT NULL DEFAULT 0,
    report  TEXT,
    PRIMARY KEY (service, name)
) STRICT;
