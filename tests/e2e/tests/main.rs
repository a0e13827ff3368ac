//! The end-to-end tests: one program, since each would be linked with everything that there is. Each file is about one
//! thing, and `cargo nextest` runs each test in a process of its own.
//!
//! `./dev test` runs them twice, as root and as an ordinary user, because a sandbox is made differently for each. A test
//! that cannot see a difference has the mark [`#[once]`](cofferdam_test_marks::once) before `#[test]`.

mod adversary;
mod agents;
mod any_moment;
mod asking;
mod attacks;
mod auth;
mod backup;
mod broker_attacks;
mod broker_floods;
mod broker_memory;
mod broker_restart;
mod build_image;
mod chaos;
mod chat;
mod cli;
mod concurrency;
mod conformance;
mod containers;
mod crashes;
mod dead_letters;
mod deploy;
mod detached;
mod direct_runs;
mod docker;
mod doctor;
mod hostile_repository;
mod killed_roles;
mod messages;
mod model_failures;
mod outcomes;
mod processes;
mod read_only;
mod redaction;
mod remote;
mod round_trip;
mod runs;
mod scripted_model;
mod served;
mod service;
mod settings;
mod setup;
mod shared_record;
mod smoke;
mod specs;
mod system;
mod through_broker;
mod walls;
mod worker_image;
mod working_dir;
mod workspace_layout;
