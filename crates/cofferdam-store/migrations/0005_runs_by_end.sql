-- Retention asks, each round, for the runs that ended before a time. PostgreSQL has had this from its first version on.
CREATE INDEX IF NOT EXISTS runs_by_end ON runs (finished_at) WHERE finished_at IS NOT NULL;
