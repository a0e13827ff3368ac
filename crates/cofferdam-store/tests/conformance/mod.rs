//! What every store must do. Each test has one body and runs on every store there is.

mod attempts;
mod audit;
mod cancel;
mod consistency;
mod conversations;
mod egress;
mod events;
mod leases;
mod letters;
mod messages;
mod owners;
mod placement;
mod processes;
mod queue;
mod service;
mod slots;
mod spec_runs;
mod specs;
mod system;
mod text;
mod turns;
mod wakes;
