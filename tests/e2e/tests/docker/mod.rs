//! Runs in containers of a real Docker engine: the real agents, what happens when something of it is missing or dies,
//! and the services of the host.

mod agents;
mod crashes;
mod fail_closed;
mod services;
mod stage;
