//! The keys, as data: the check, the answer of `GET /config` and `docs/reference/config.md` are made from them.

/// One key that an operator may change while the service runs.
#[derive(Debug)]
pub struct ConfigKey {
    /// Its name.
    pub name: &'static str,
    /// How its value is read, and what it sets.
    pub sets: Sets,
    /// What it does, in a sentence for people.
    pub summary: &'static str,
}

/// How a value is read, and what it sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sets {
    /// `host` or `sandbox`: the mode of runs.
    Environment,
    /// The setting of this path, written as in `settings.json`.
    Setting(&'static [&'static str]),
    /// A mode with walls: `sandbox.mode`. `host` is switched to by `EXECUTION_ENVIRONMENT` alone.
    SealedMode,
    /// The agent of a role, or `inherit`, which is the default agent.
    RoleAgent(&'static [&'static str]),
    /// A folder of each node, as an absolute path, in the place of the variable of this name.
    Folder,
}

/// The setting that every way of choosing a mode ends in.
pub(super) const MODE: &[&str] = &["sandbox", "mode"];
/// The setting of the default agent.
pub(super) const DEFAULT_AGENT: &[&str] = &["service", "default_agent"];
/// The key that switches the environment.
pub(super) const ENVIRONMENT: &str = "EXECUTION_ENVIRONMENT";
/// The key whose meaning people take for more than it is.
pub(super) const DOCKER_NETWORK: &str = "SANDBOX_DOCKER_NETWORK";

/// Every key. A later one goes before an earlier one that sets the same.
pub const CONFIG_KEYS: &[ConfigKey] = &[
    key("sandbox.mode", Sets::SealedMode, "Which sandbox is made: `native`, `docker` or `apple`."),
    key(
        ENVIRONMENT,
        Sets::Environment,
        "Where agents run: `sandbox`, which is `sandbox.mode` if that is set and has walls, else docker; or `host`, without any wall.",
    ),
    key(
        "SANDBOX_DOCKER_IMAGE",
        Sets::Setting(&["sandbox", "docker", "image"]),
        "The image of containers in mode `docker`.",
    ),
    key(
        DOCKER_NETWORK,
        Sets::Setting(&["sandbox", "docker", "network"]),
        "The engine's network of containers with network `open`; sealed ones have none.",
    ),
    key(
        "LLM_EXECUTOR",
        Sets::Setting(DEFAULT_AGENT),
        "The agent of runs that name none: `claude_code`, `codex` or `opencode`.",
    ),
    key(
        "WORKER_LLM_EXECUTOR",
        Sets::RoleAgent(&["roles", "worker", "agent"]),
        "The agent of runs with the role `worker`, or `inherit`.",
    ),
    key(
        "TESTER_LLM_EXECUTOR",
        Sets::RoleAgent(&["roles", "tester", "agent"]),
        "The agent of runs with the role `tester`, or `inherit`.",
    ),
    key(
        "DOCSER_LLM_EXECUTOR",
        Sets::RoleAgent(&["roles", "docser", "agent"]),
        "The agent of runs with the role `docser`, or `inherit`.",
    ),
    key(
        "MAX_CONCURRENT_WORKERS",
        Sets::Setting(&["sandbox", "max_concurrency"]),
        "Runs at the same time, on all nodes of the record together; 0 is no limit.",
    ),
    key(
        "CLAUDE_AUTH_DIR",
        Sets::Folder,
        "Where nodes look for the login of Claude Code, in the place of `~/.claude`.",
    ),
    key(
        "CLAUDE_CONFIG_DIR",
        Sets::Folder,
        "Where nodes look for the login of Claude Code, in the place of `~/.config/claude`.",
    ),
    key(
        "CODEX_AUTH_DIR",
        Sets::Folder,
        "Where nodes look for the login of Codex, in the place of `~/.codex`.",
    ),
    key(
        "sandbox.timeout_seconds",
        Sets::Setting(&["sandbox", "timeout_seconds"]),
        "Seconds that one attempt may take, where `service.max_execution_time_ms` does not say less.",
    ),
    key(
        "sandbox.max_attempts",
        Sets::Setting(&["sandbox", "max_attempts"]),
        "How often a run is tried before it is given up.",
    ),
    key(
        "sandbox.limits.memory",
        Sets::Setting(&["sandbox", "limits", "memory"]),
        "Memory of all processes of a run together.",
    ),
    key("sandbox.limits.cpus", Sets::Setting(&["sandbox", "limits", "cpus"]), "Processors of a run."),
    key(
        "service.max_concurrency_per_project",
        Sets::Setting(&["service", "max_concurrency_per_project"]),
        "Runs of one project at the same time; 0 is no limit.",
    ),
    key(
        "service.max_concurrency_per_agent",
        Sets::Setting(&["service", "max_concurrency_per_agent"]),
        "Runs of one agent at the same time; 0 is no limit.",
    ),
    key(
        "service.max_execution_time_ms",
        Sets::Setting(&["service", "max_execution_time_ms"]),
        "Milliseconds that one attempt may take.",
    ),
];

const fn key(name: &'static str, sets: Sets, summary: &'static str) -> ConfigKey {
    ConfigKey { name, sets, summary }
}

impl ConfigKey {
    /// The setting that it ends in; `None` for what only nodes look at.
    pub(super) fn path(&self) -> Option<&'static [&'static str]> {
        match self.sets {
            Sets::Environment | Sets::SealedMode => Some(MODE),
            Sets::Setting(path) | Sets::RoleAgent(path) => Some(path),
            Sets::Folder => None,
        }
    }
}
