//! The real Claude Code, Codex and OpenCode, run by the real binary, against a model that plays a script.

mod at_home;
mod budgets;
mod choosing;
mod edits;
mod hunt;
mod logged_in;
mod logins;
mod on_the_host;
mod permissions;
mod read_only;
mod stage;

pub(crate) use stage::Cli;
