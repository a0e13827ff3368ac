-- When what a run had left was removed because it was kept long enough, so that nobody takes it for a run that left nothing.
ALTER TABLE runs ADD COLUMN events_removed_at INTEGER;
ALTER TABLE runs ADD COLUMN files_removed_at INTEGER;
