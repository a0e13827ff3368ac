//! The processes that a service keeps: what they are called, what is wanted of them, and how they stand.

use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::policy::Mode;
use crate::settings::Role;
use crate::text::{named, written_as_text};
use crate::value::ValueError;

/// The most nodes of one role that a service keeps.
const MOST_NODES: u8 = 99;

/// A process that a service keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ProcessName {
    /// Runs tasks, each in a sandbox of its own where the environment is `sandbox`.
    Dispatcher,
    /// The way out of every sandbox of the service's nodes.
    Broker,
    /// A node that runs tasks of one role as processes of the machine.
    Node(Role, NonZeroU8),
}

/// What kind of process it is, in the words of the document that these names come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProcessKind {
    /// The service needs it.
    Service,
    /// It runs tasks.
    Worker,
}

impl ProcessName {
    /// What people read.
    #[must_use]
    pub fn label(self) -> String {
        match self {
            Self::Dispatcher => "Dispatcher".to_owned(),
            Self::Broker => "Broker".to_owned(),
            Self::Node(Role::Worker, number) => format!("Worker {number}"),
            Self::Node(Role::Tester, number) => format!("Tester {number}"),
            Self::Node(Role::Docser, number) => format!("Docser {number}"),
        }
    }

    /// What it does, in a sentence.
    #[must_use]
    pub fn description(self) -> String {
        match self {
            Self::Dispatcher => {
                "Runs the tasks of the queue, each in the sandbox of its own policy.".to_owned()
            }
            Self::Broker => {
                "The only way out of the sandboxes of this service: models, proxy, git.".to_owned()
            }
            Self::Node(role, _) => format!(
                "Runs tasks of the role {role} in mode host: as processes of this machine, without a sandbox."
            ),
        }
    }

    /// What kind of process it is.
    #[must_use]
    pub fn kind(self) -> ProcessKind {
        match self {
            Self::Dispatcher | Self::Broker => ProcessKind::Service,
            Self::Node(..) => ProcessKind::Worker,
        }
    }

    /// Whether it runs tasks as processes of the machine, which only the environment `host` wants.
    #[must_use]
    pub fn is_host_node(self) -> bool {
        matches!(self, Self::Node(..))
    }

    /// What is listed although nobody has started it yet.
    #[must_use]
    pub fn always_listed() -> [Self; 5] {
        let first = |role| Self::Node(role, NonZeroU8::MIN);
        [Self::Dispatcher, Self::Broker, first(Role::Worker), first(Role::Tester), first(Role::Docser)]
    }
}

impl fmt::Display for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dispatcher => f.write_str("dispatcher"),
            Self::Broker => f.write_str("broker"),
            Self::Node(role, number) => write!(f, "{role}-{number}"),
        }
    }
}

/// A name that no process has here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no process `{name}`: {instead}")]
pub struct UnknownProcess {
    /// What was asked for.
    pub name: String,
    /// What does its job here, or which names there are.
    pub instead: &'static str,
}

impl FromStr for ProcessName {
    type Err = UnknownProcess;

    fn from_str(text: &str) -> Result<Self, UnknownProcess> {
        let unknown = || UnknownProcess {
            // Whoever asks may write as much as a path holds.
            name: text.chars().take(64).collect(),
            instead: instead_of(text),
        };
        match text {
            "dispatcher" => return Ok(Self::Dispatcher),
            "broker" => return Ok(Self::Broker),
            _ => {}
        }
        let (role, number) = text.split_once('-').ok_or_else(unknown)?;
        let role: Role = role.parse().map_err(|_| unknown())?;
        // One process has one name: `worker-01` is none.
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
        let number = number.parse().ok().filter(|number: &NonZeroU8| is_plain && number.get() <= MOST_NODES);
        number.map(|number| Self::Node(role, number)).ok_or_else(unknown)
    }
}

written_as_text!(ProcessName);
named!(DesiredState, ProcessStatus, Environment);

/// What does the job here of a process that other systems have.
fn instead_of(name: &str) -> &'static str {
    let stem = name.split_once('-').map_or(name, |(stem, _)| stem);
    match (name, stem) {
        ("server", _) => "`cofferdam serve` is the server; it is started and ended by `cofferdam start|stop`",
        ("cycle-manager", _) => "the dispatcher retries, times out and takes up runs itself",
        (_, "planner") => "nothing plans here; each task is sent as a run of its own (POST /api/v1/runs)",
        (_, "judge") => {
            "nothing judges here; what a run did is its outcome and its diff (GET /api/v1/runs/{id})"
        }
        (_, "db") => {
            "`cofferdam serve` makes the record and brings it up to date; `cofferdam db` looks after it"
        }
        (_, "worker" | "tester" | "docser") => {
            "the number after the role is from 1 to 99, such as `worker-1`"
        }
        _ => "there are `dispatcher`, `broker`, and `worker-N`, `tester-N`, `docser-N` with N from 1 to 99",
    }
}

/// What an operator wants of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", parse_err_ty = ValueError, parse_err_fn = not_a_state)]
pub enum DesiredState {
    /// It is to run, also after the service was started again.
    Running,
    /// It is not.
    Stopped,
}

fn not_a_state(text: &str) -> ValueError {
    ValueError::new(text, "is not a desired state", "`running` or `stopped`")
}

/// How a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ProcessStatus {
    /// It was never started.
    #[default]
    Idle,
    /// It runs; if it is to stop, it finishes what it has.
    Running,
    /// It ended by itself, and is started again after a pause.
    Failed,
    /// It was stopped.
    Stopped,
}

/// Where agents run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", parse_err_ty = String, parse_err_fn = not_an_environment)]
pub enum Environment {
    /// As processes of the machine, without a wall and with their CLI's own login.
    Host,
    /// Each in a sandbox of its own.
    Sandbox,
}

impl Environment {
    /// The environment of runs in this mode.
    #[must_use]
    pub fn of(mode: Mode) -> Self {
        match mode {
            Mode::Host => Self::Host,
            Mode::Native | Mode::Docker | Mode::Apple => Self::Sandbox,
        }
    }
}

fn not_an_environment(text: &str) -> String {
    format!("`{text}` is not an environment")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_one_name() {
        for name in ["dispatcher", "broker", "worker-1", "tester-12", "docser-99"] {
            assert_eq!(name.parse::<ProcessName>().unwrap().to_string(), name);
        }
        for name in ["", "worker", "worker-", "worker-0", "worker-01", "worker-100", "worker-+1", "Worker-1"]
        {
            assert!(name.parse::<ProcessName>().is_err(), "{name}");
        }
    }

    #[test]
    fn an_environment_is_the_same_word_in_json_and_in_text() {
        for environment in [Environment::Host, Environment::Sandbox] {
            assert_eq!(serde_json::to_value(environment).unwrap(), environment.as_str());
            assert_eq!(environment.as_str().parse(), Ok(environment));
        }
        assert_eq!("docker".parse::<Environment>(), Err("`docker` is not an environment".to_owned()));
        assert_eq!("running".parse(), Ok(DesiredState::Running));
        let error = "Idle".parse::<DesiredState>().unwrap_err();
        assert_eq!(
            (error.problem.as_str(), error.hint.as_str()),
            ("`Idle` is not a desired state", "`running` or `stopped`")
        );
    }

    #[test]
    fn a_name_of_another_system_says_what_does_its_job_here() {
        for (name, instead) in [
            ("planner", "POST /api/v1/runs"),
            ("judge", "outcome"),
            ("judge-2", "outcome"),
            ("cycle-manager", "dispatcher"),
            ("server", "cofferdam serve"),
            ("db-up", "cofferdam db"),
            ("worker-0", "from 1 to 99"),
            ("nobody", "`broker`"),
        ] {
            let unknown = name.parse::<ProcessName>().unwrap_err();
            assert!(unknown.instead.contains(instead), "{unknown}");
        }
        let long = "x".repeat(10_000).parse::<ProcessName>().unwrap_err();
        assert_eq!(long.name.len(), 64);
    }
}
