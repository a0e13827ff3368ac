//! How `cofferdam serve` and `cofferdam work` behave: the key `service`.

mod allowed;
mod allowed_push;
mod web;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::allowed::{AllowedMode, AllowedRoot, RepoPattern};
pub use self::allowed_push::BranchPattern;
pub use self::web::{AllowedHost, PublicUrl, WebOrigin};
use super::{Agent, Count, ForwardName, MaxConcurrency};
use crate::access::Visibility;
use crate::egress::{Host, is_public};
use crate::policy::{Mode, Network};
use crate::publish::BranchName;
use crate::repo_url::RepoUrl;

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
    /// Direct runs at the same time on one node, besides the others: each costs a connection, and no sandbox.
    pub direct_capacity: Capacity,
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
    /// https address at a public host. One of the list may be at any address, also of this machine's own network, and over
    /// ssh or git. `*` stands for a part of the path, `**` for any number of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_repos: Option<Vec<RepoPattern>>,
    /// Branches that such a caller may have pushed, or let an agent push, by the address of the repository, such as
    /// `{"https://github.com/acme/*": ["agents/*"]}`; without it none. `*` stands for a part of the name, `**` for any number
    /// of them.
    pub allowed_push: BTreeMap<RepoPattern, Vec<BranchPattern>>,
    /// Services of `sandbox.forwards` that such a caller may ask for, besides those that every run has.
    pub allowed_forwards: Vec<ForwardName>,
    /// Whose runs a key with the scope `read` sees: those of every owner, or its own owner's. A key with `run` alone sees its
    /// own owner's, one with `system` all.
    pub visibility: Visibility,
    /// The agent of a task that names none: `claude_code`, `codex` or `opencode`.
    pub default_agent: Agent,
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

    /// Whether a caller without the scope `system` may name an address: one of the operator's list, or without a list an https
    /// address that is not on this machine or in its own network, as far as its text says. A caller could otherwise make the
    /// node fetch what only the node can reach; where a name leads is looked at when it is fetched.
    #[must_use]
    pub fn allows_repo(&self, url: &RepoUrl) -> bool {
        match (&self.allowed_repos, url.host()) {
            (Some(patterns), _) => patterns.iter().any(|pattern| pattern.matches(url)),
            (None, Some(_)) if url.https_host().is_none() => false,
            (None, Some(Host::Address(address))) => is_public(address),
            (None, Some(Host::Name(name))) => name != "localhost" && !name.ends_with(".localhost"),
            (None, None) => false,
        }
    }

    /// Whether a run of a caller without the scope `system` may push a branch to a repository.
    #[must_use]
    pub fn allows_push(&self, url: &RepoUrl, branch: &BranchName) -> bool {
        let of_repository = self.allowed_push.iter().filter(|(repository, _)| repository.matches(url));
        of_repository.flat_map(|(_, branches)| branches).any(|pattern| pattern.matches(branch))
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
            direct_capacity: Capacity::of(200),
            max_concurrency_per_project: MaxConcurrency::of(0),
            max_concurrency_per_agent: MaxConcurrency::of(0),
            allowed_modes: AllowedMode::SEALED.to_vec(),
            allowed_roots: Vec::new(),
            allowed_repos: None,
            allowed_push: BTreeMap::new(),
            allowed_forwards: Vec::new(),
            visibility: Visibility::All,
            default_agent: Agent::default(),
            max_execution_time_ms: ExecutionTimeMs::of(300_000),
            drain_seconds: DrainSeconds::of(30),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo_url::LocalUrls;

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
        assert_eq!(service.visibility, Visibility::All);
    }

    fn address(text: &str) -> RepoUrl {
        RepoUrl::parse(text, LocalUrls::Allow).unwrap()
    }

    #[test]
    fn without_a_list_every_address_is_allowed_that_is_not_in_our_own_network() {
        let open = ServiceSettings::default();
        let listed: ServiceSettings =
            serde_json::from_str(r#"{"allowed_repos": ["https://10.0.0.1/git/*"]}"#).unwrap();
        for url in ["https://github.com/acme/app", "https://8.8.8.8/x"] {
            assert!(open.allows_repo(&address(url)) && !listed.allows_repo(&address(url)), "{url}");
        }
        for url in [
            "https://localhost/x",
            "https://LOCALHOST./x",
            "https://a.localhost/x",
            "https://127.0.0.1:8443/x",
            "ssh://git@[::1]/x",
            "https://10.0.0.1/git/x",
            "https://169.254.169.254/x",
            "file:///srv/x",
            "git@host.example:a/b",
            "ssh://git@host.example/a",
            "git://host.example/a",
        ] {
            assert!(!open.allows_repo(&address(url)), "{url}");
        }
        assert!(listed.allows_repo(&address("https://10.0.0.1/git/x")), "the operator says so");
    }

    #[test]
    fn a_branch_is_pushed_where_the_operator_says_so() {
        let url = address("https://github.com/acme/app.git");
        let branch = |name: &str| name.parse::<BranchName>().unwrap();
        assert!(!ServiceSettings::default().allows_push(&url, &branch("agents/fix")));
        let service: ServiceSettings = serde_json::from_str(
            r#"{"allowed_push": {"https://github.com/acme/*": ["agents/*", "docs"], "https://github.com/b/*": ["**"]}}"#,
        )
        .unwrap();
        for name in ["agents/fix", "docs"] {
            assert!(service.allows_push(&url, &branch(name)), "{name}");
        }
        for name in ["main", "agents", "agents/a/b", "docs/x"] {
            assert!(!service.allows_push(&url, &branch(name)), "{name}");
        }
        assert!(service.allows_push(&address("https://github.com/b/x"), &branch("a/b/c")));
        assert!(!service.allows_push(&address("https://github.com/c/x"), &branch("docs")));
        assert!(!service.allows_push(&address("file:///github.com/b/x"), &branch("docs")));
    }
}
