//! The service as its callers meet it: with real agents, and on days when the record is away or the disk is full.

mod audited;
mod database_away;
mod full_disk;
mod kept;
mod repositories;
mod seed_calls;
