-- Whose a run and a key are, and what became of what somebody asked for.

-- What was on record before there were owners belongs to the operator.
ALTER TABLE runs ADD COLUMN owner TEXT NOT NULL DEFAULT 'system';
ALTER TABLE keys ADD COLUMN owner TEXT NOT NULL DEFAULT 'system';

CREATE INDEX runs_by_owner ON runs (owner, created_at, id);

-- An idempotency key is its owner's own. SQLite cannot take UNIQUE from a column, so a new one has the keys from here on,
-- and nothing is written to the old one any more.
ALTER TABLE runs RENAME COLUMN idempotency_key TO key_before_owners;
ALTER TABLE runs ADD COLUMN idempotency_key TEXT;
UPDATE runs SET idempotency_key = key_before_owners, key_before_owners = NULL WHERE key_before_owners IS NOT NULL;
CREATE UNIQUE INDEX runs_by_idempotency_key ON runs (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;

ALTER TABLE audit ADD COLUMN outcome TEXT NOT NULL DEFAULT 'done' CHECK (outcome IN ('done', 'refused'));
ALTER TABLE audit ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
-- Refusals are counted by the minute; what was done has none, and each has its own entry.
ALTER TABLE audit ADD COLUMN minute INTEGER;
CREATE UNIQUE INDEX audit_by_minute ON audit (actor, action, minute) WHERE minute IS NOT NULL;
