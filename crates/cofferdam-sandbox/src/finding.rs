//! What `sandbox doctor` finds.

use cofferdam_core::Agent;
use serde::Serialize;

use crate::errors::Refusal;

/// The names of all findings that are about no agent. docs/troubleshooting.md has each of them, with what to type.
pub const FINDINGS: [&str; 31] = [
    "agent_access",
    "anthropic_key",
    "anthropic_url",
    "apparmor",
    "container",
    "docker",
    "engine",
    "engine_socket",
    "engine_users",
    "git",
    "ids",
    "image",
    "kernel",
    "landlock",
    "limits",
    "mounts",
    "openai_key",
    "openai_url",
    "overlay",
    "record",
    "runtime",
    "runtime_command",
    "runtime_options",
    "sandbox",
    "seccomp",
    "service",
    "settings",
    "socket",
    "state_folder",
    "user_namespaces",
    "worker_binary",
];

/// What a finding means for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Runs start, with less than there could be.
    Weak,
    /// No run would start.
    Missing,
    /// It could not be found out.
    Unknown,
}

/// Something that this machine has or lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// A stable name, for programs.
    pub name: &'static str,
    /// What it means for a run.
    pub status: Status,
    /// What was found, for people.
    pub detail: String,
    /// What to type.
    pub remedy: Option<String>,
}

impl Finding {
    /// A finding with what to type.
    #[must_use]
    pub fn new(name: &'static str, status: Status, detail: &str, remedy: &str) -> Self {
        debug_assert!(is_known(name), "{name} is not in FINDINGS");
        Self { name, status, detail: detail.to_owned(), remedy: Some(remedy.to_owned()) }
    }

    /// Nothing is to be done.
    #[must_use]
    pub fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        debug_assert!(is_known(name), "{name} is not in FINDINGS");
        Self { name, status: Status::Ok, detail: detail.into(), remedy: None }
    }

    /// No run would start.
    #[must_use]
    pub fn missing(name: &'static str, refusal: &Refusal) -> Self {
        Self::new(name, Status::Missing, &refusal.problem, &refusal.remedy)
    }

    /// Nothing is known, and that is said.
    #[must_use]
    pub fn unknown(name: &'static str, detail: impl Into<String>) -> Self {
        debug_assert!(is_known(name), "{name} is not in FINDINGS");
        Self { name, status: Status::Unknown, detail: detail.into(), remedy: None }
    }
}

/// What is found of an agent has its name, and what is found of its login `NAME_login`.
fn is_known(name: &str) -> bool {
    let of_agent = name.strip_suffix("_login").unwrap_or(name);
    FINDINGS.contains(&name) || Agent::ALL.iter().any(|agent| agent.as_str() == of_agent)
}
