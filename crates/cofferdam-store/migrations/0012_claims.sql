-- What a claim asks about the runs under way is in an index as a whole, `state` included. A run's row has its request before
-- most of these columns, so that reading them from the row means reading the request, which may be of a megabyte.
DROP INDEX runs_under_way;
CREATE INDEX runs_under_way ON runs (lane, owner, project, agent, is_direct, state) WHERE state = 'running';
-- A conversation may have many runs that have ended.
CREATE INDEX runs_live_in_conversation ON runs (conversation, state) WHERE state IN ('queued', 'running');
