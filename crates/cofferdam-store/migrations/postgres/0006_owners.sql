-- Whose a run and a key are, and what became of what somebody asked for.

-- What was on record before there were owners belongs to the operator.
ALTER TABLE runs ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT 'system';
ALTER TABLE keys ADD COLUMN owner text COLLATE "C" NOT NULL DEFAULT 'system';

CREATE INDEX runs_by_owner ON runs (owner, created_at, id);

-- An idempotency key is its owner's own.
ALTER TABLE runs DROP CONSTRAINT runs_idempotency_key_key;
CREATE UNIQUE INDEX runs_by_idempotency_key ON runs (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;

ALTER TABLE audit ADD COLUMN outcome text NOT NULL DEFAULT 'done' CHECK (outcome IN ('done', 'refused'));
ALTER TABLE audit ADD COLUMN count bigint NOT NULL DEFAULT 1;
-- Refusals are counted by the minute; what was done has none, and each has its own entry.
ALTER TABLE audit ADD COLUMN minute bigint;
CREATE UNIQUE INDEX audit_by_minute ON audit (actor, action, minute) WHERE minute IS NOT NULL;
