//! How `cofferdam serve` and `cofferdam work` behave: the key `service`.

mod allowed;
mod web;

use std::net::{Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::allowed::{AllowedMode, AllowedRoot, RepoPattern};
pub use self::web::{AllowedHost, PublicUrl, WebOrigin};
use super::{Count, MaxConcurrency};
use crate::policy::{Mode, Network};

/// Runs that one node has under way at the same time.
pub type Capacity = Count<1, 10_000>;
/// Seconds that a node which is told to stop waits for its runs, up to a day.
pub type DrainSeconds = Count<0, 86_400>;
/// Milliseconds that a caller may let a task take, up to 49 days.
pub type ExecutionTimeMs = Count<1, { u32::MAX }>;

/// The service: what it listens on, what its callers may choose, and how much it does at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceSettings {
    /// Where the API listens. On any address but a loopback one every caller needs a key.
    pub listen: SocketAddr,
    /// Under which address others reach the API, for links in answers: `https://cofferdam.example`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_url: Option<PublicUrl>,
    /// Names in the `Host` header that are answered, besides the address that is listened on, `localhost` and
    /// that of `public_url`.
    pub allowed_hosts: Vec<AllowedHost>,
    /// Web pages that may call the API from a browser, such as `https://app.example`.
    pub cors_origins: Vec<WebOrigin>,
    /// Runs at the same time on one node; without it as many as the machine has processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Capacity>,
    /// Runs of one project at the same time, on all nodes together; 0 is no limit.
    pub max_concurrency_per_project: MaxConcurrency,
    /// Runs of one agent at the same time, on all nodes together; 0 is no limit. An agent's own
    /// `max_concurrency` goes before it.
    pub max_concurrency_per_agent: MaxConcurrency,
    /// Modes that a caller without the scope `system` may choose: `docker` with a network that is sealed or none,
    /// `docker:open` with any.
    pub allowed_modes: Vec<AllowedMode>,
    /// Folders of this machine below which such a caller may name a repository or a folder to work in.
    pub allowed_roots: Vec<AllowedRoot>,
    /// Addresses of repositories that such a caller may name, such as `https://github.com/acme/*`; without it any
    /// that is not on this machine. `*` stands for a part of the path, `**` for any number of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_repos: Option<Vec<RepoPattern>>,
    /// The longest time that a caller may ask for, and what a task may take where it asks for none, in milliseconds.
    pub max_execution_time_ms: ExecutionTimeMs,
    /// Seconds that a node which is told to stop waits for its runs. Those that are not done go on in their
    /// sandboxes, and the next start of the node takes them up again.
    pub drain_seconds: DrainSeconds,
}

impl ServiceSettings {
    /// Whether a caller without the scope `system` may choose a mode with a network.
    #[must_use]
    pub fn allows_mode(&self, mode: Mode, network: Network) -> bool {
        self.allowed_modes.iter().any(|allowed| allowed.allows(mode, network))
    }
}

impl Default for ServiceSettings {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8787)),
            public_url: None,
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            capacity: None,
            max_concurrency_per_project: MaxConcurrency::of(0),
            max_concurrency_per_agent: MaxConcurrency::of(0),
            allowed_modes: AllowedMode::SEALED.to_vec(),
            allowed_roots: Vec::new(),
            allowed_repos: None,
            max_execution_time_ms: ExecutionTimeMs::of(300_000),
            drain_seconds: DrainSeconds::of(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_settings_callers_have_sealed_sandboxes_and_nothing_else() {
        let service = ServiceSettings::default();
        for mode in [Mode::Native, Mode::Docker, Mode::Apple] {
            assert!(service.allows_mode(mode, Network::Sealed) && service.allows_mode(mode, Network::None));
            assert!(!service.allows_mode(mode, Network::Open), "{mode}");
        }
        for network in [Network::Sealed, Network::None, Network::Open] {
            assert!(!service.allows_mode(Mode::Host, network), "{network}");
        }
        assert!(service.listen.ip().is_loopback() && service.allowed_roots.is_empty());
    }
}
