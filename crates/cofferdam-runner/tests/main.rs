//! Workspaces and diffs, with real repositories and real mounts.

#![allow(clippy::unwrap_used, clippy::allow_attributes, reason = "tests")]

mod diff_round_trip;
mod fixture;
mod hostile_repository;
mod kept;
mod ordinary_user;
mod sources;
mod unfolding;
