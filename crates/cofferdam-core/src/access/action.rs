//! Everything that somebody can do. One name each, in the audit, in `docs/reference/access.md` and in refusals.

use std::fmt;
use std::str::FromStr;

use crate::value::ValueError;

macro_rules! actions {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)+) => {
        /// One thing that somebody can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Action {
            /// Every action.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Its name.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What it does, in a sentence for people.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self {
                    $(Self::$variant => concat!($($doc),+).trim_ascii(),)+
                }
            }
        }
    };
}

actions! {
    /// Create a run, or have it judged without starting it.
    CreateRun = "run.create",
    /// Run a request again, as a new run: retry and replay.
    RetryRun = "run.retry",
    /// Ask for a run's end.
    CancelRun = "run.cancel",
    /// Send a message into a live run.
    SendMessage = "run.message",
    /// Add a host to what a live run may reach.
    AllowHost = "run.allow",
    /// Remove a run that has ended, with what it left.
    RemoveRun = "run.remove",
    /// List runs.
    ListRuns = "run.list",
    /// Read a run: its state, events, diff, logs, artifacts, seal and messages.
    ReadRun = "run.read",
    /// List and read dead letters.
    ReadDeadLetters = "dead_letter.read",
    /// Forget a dead letter, and not its run.
    RemoveDeadLetter = "dead_letter.remove",
    /// Register a repository as a project.
    CreateProject = "project.create",
    /// List and read projects.
    ReadProjects = "project.read",
    /// Forget a project, and not its runs.
    RemoveProject = "project.remove",
    /// Create a spec: what is wanted of a project, to be done in phases.
    CreateSpec = "spec.create",
    /// List specs.
    ListSpecs = "spec.list",
    /// Read a spec: its phases, outputs, versions, runs and events.
    ReadSpec = "spec.read",
    /// Change a spec or what one of its phases brought, or put it away.
    UpdateSpec = "spec.update",
    /// Execute a spec, which makes a run.
    ExecuteSpec = "spec.execute",
    /// Approve or reject what a phase of a spec brought.
    DecideSpec = "spec.decide",
    /// Make an API key.
    CreateKey = "key.create",
    /// List API keys, without the keys themselves.
    ListKeys = "key.list",
    /// Revoke an API key.
    RevokeKey = "key.revoke",
    /// List the agents that can be named.
    ListAgents = "agent.list",
    /// List the nodes that execute runs.
    ListNodes = "node.list",
    /// Have every node look at what its machine can enforce.
    RunDoctor = "node.doctor",
    /// Have every node look which agents it has a CLI and a key or login for.
    LookAtAgents = "node.agents",
    /// Have a node try whether an agent is logged in, which may cost a model call.
    CheckAuth = "auth.check",
    /// Read what may change while the service runs, with where each value was set.
    ReadConfig = "config.read",
    /// Change it.
    ChangeConfig = "config.change",
    /// List and read the processes of services, and their logs.
    ReadProcesses = "process.read",
    /// Start a process of a service.
    StartProcess = "process.start",
    /// Stop processes of a service: what they run goes on, unless it is to be cancelled.
    StopProcess = "process.stop",
    /// Read numbers for monitoring, as totals.
    ReadMetrics = "metrics.read",
    /// Read who changed what.
    ReadAudit = "audit.read",
    /// Read the service's settings, and where each was set.
    ReadSettings = "settings.read",
    /// List what of repositories is trusted on the service's machine.
    ReadTrust = "trust.read",
}

impl Action {
    /// Whether it changes or costs something, so that the audit tells of it.
    #[must_use]
    pub fn is_change(self) -> bool {
        match self {
            Self::CreateRun
            | Self::RetryRun
            | Self::CancelRun
            | Self::SendMessage
            | Self::AllowHost
            | Self::RemoveRun
            | Self::RemoveDeadLetter
            | Self::CreateProject
            | Self::RemoveProject
            | Self::CreateSpec
            | Self::UpdateSpec
            | Self::ExecuteSpec
            | Self::DecideSpec
            | Self::CreateKey
            | Self::RevokeKey
            | Self::CheckAuth
            | Self::ChangeConfig
            | Self::StartProcess
            | Self::StopProcess => true,
            Self::ListRuns
            | Self::ReadRun
            | Self::ReadDeadLetters
            | Self::ReadProjects
            | Self::ListSpecs
            | Self::ReadSpec
            | Self::ListKeys
            | Self::ListAgents
            | Self::ListNodes
            | Self::RunDoctor
            | Self::LookAtAgents
            | Self::ReadConfig
            | Self::ReadProcesses
            | Self::ReadMetrics
            | Self::ReadAudit
            | Self::ReadSettings
            | Self::ReadTrust => false,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Action {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let found = Self::ALL.iter().copied().find(|action| action.as_str() == text);
        found.ok_or_else(|| ValueError::new(text, "is not an action", "see docs/reference/access.md"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_action_has_a_name_of_its_own_and_a_summary() {
        let names: std::collections::BTreeSet<_> = Action::ALL.iter().map(|action| action.as_str()).collect();
        assert_eq!(names.len(), Action::ALL.len());
        for action in Action::ALL {
            assert_eq!(action.as_str().parse(), Ok(*action));
            assert!(action.summary().ends_with('.'), "{action}");
        }
    }
}
