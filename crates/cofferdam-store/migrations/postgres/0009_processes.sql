-- What each service keeps running, and what an operator wants of it.

-- A supervisor, by the id of its node's name in its state folder.
CREATE TABLE services (
    id         text COLLATE "C" PRIMARY KEY NOT NULL,
    place      text COLLATE "C" NOT NULL,
    started_at bigint NOT NULL,
    seen_at    bigint NOT NULL,
    report     text NOT NULL
);

CREATE TABLE processes (
    service text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    desired text COLLATE "C" NOT NULL CHECK (desired IN ('running', 'stopped')),
    -- Counts what was asked for, so that whoever asked can see that it was heard.
    asked   bigint NOT NULL DEFAULT 0,
    report  text,
    PRIMARY KEY (service, name)
);
