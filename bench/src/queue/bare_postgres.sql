-- What the record does for one run that is accepted, claimed and finished, in the same three transactions.
\set number random(1, 1000000000000000)
BEGIN;
INSERT INTO runs (id, request, state, not_before_ms, created_at, updated_at, role, priority, mode, timeout_ms)
VALUES ('bench-' || (:number)::bigint, :request, 'queued', :now, :now, :now, 'worker', 0, 'native', 600000)
ON CONFLICT DO NOTHING;
WITH numbered AS (
    UPDATE runs SET last_seq = last_seq + 1, updated_at = greatest(updated_at, (:now)::bigint)
    WHERE id = 'bench-' || (:number)::bigint RETURNING last_seq), audited AS (
    INSERT INTO audit (at, actor, action, subject, data)
    VALUES (:now, 'local', 'run.create', 'bench-' || (:number)::bigint, '{}'))
INSERT INTO events (run, seq, at, type, attempt, worker_seq, data)
SELECT 'bench-' || (:number)::bigint, last_seq, :now, 'run.queued', NULL, NULL, '{}' FROM numbered;
COMMIT;
BEGIN;
SELECT id FROM runs WHERE state = 'queued' AND not_before_ms <= (:now)::bigint
AND claimable_by IS NULL AND place IS NULL AND lane IS NULL AND project IS NULL AND agent IS NULL
ORDER BY priority DESC, created_at, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED \gset
UPDATE runs SET state = 'running', attempts = attempts + 1, token = token + 1, lease_node = 'node',
lease_place = 'place', lease_expires_at_ms = (:now)::bigint + 30000, updated_at = :now, waits_at_ms = NULL
WHERE id = :id RETURNING id, request, attempts, token \gset claimed_
INSERT INTO attempts (run, number, node, started_at) VALUES (:id, 1, 'node', :now);
WITH numbered AS (
    UPDATE runs SET last_seq = last_seq + 1, updated_at = greatest(updated_at, (:now)::bigint)
    WHERE id = :id RETURNING last_seq)
INSERT INTO events (run, seq, at, type, attempt, worker_seq, data)
SELECT :id, last_seq, :now, 'run.claimed', 1, NULL, '{}' FROM numbered;
COMMIT;
BEGIN;
SELECT state, attempts, token FROM runs WHERE id = :id FOR NO KEY UPDATE \gset held_
UPDATE attempts SET outcome = '"succeeded"', ended_at = :now WHERE run = :id AND number = 1;
UPDATE runs SET state = 'succeeded', outcome = '"succeeded"', dead_letter = false, lease_node = NULL,
lease_expires_at_ms = NULL, updated_at = :now, finished_at = :now WHERE id = :id;
SELECT count(*) AS messages FROM messages WHERE run = :id AND state = 'accepted' \gset
WITH numbered AS (
    UPDATE runs SET last_seq = last_seq + 1, updated_at = greatest(updated_at, (:now)::bigint)
    WHERE id = :id RETURNING last_seq)
INSERT INTO events (run, seq, at, type, attempt, worker_seq, data)
SELECT :id, last_seq, :now, 'run.finished', 1, NULL, '{}' FROM numbered;
COMMIT;
