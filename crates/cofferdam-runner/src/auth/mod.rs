//! Whether an agent could work now: is its CLI there, does what its sandbox needs answer, and does its model take the
//! key or the login? All of it is found out by trying, and a try costs a model call, so answers are kept for a minute.
//!
//! In a sandbox (`sandbox.rs`) a trivial prompt takes the way of every run. On the host (`host.rs`) each CLI is asked as
//! its owner would ask it, with its own login, in an empty folder.

mod cache;
mod depends_on;
mod host;
mod one_run;
mod sandbox;
mod status;
mod verdict;

use std::path::PathBuf;
use std::time::Duration;

use cofferdam_core::{Agent, Environment, Policy, iso_time};

pub use cache::AuthCache;
pub use depends_on::depends_on;
pub use status::{AuthStatus, AuthWord};

use crate::installation::Search;
use crate::node::{Node, now_ms};
use verdict::Verdict;

/// How long a CLI on the host has, unless the caller says otherwise.
const HOST_TIMEOUT: Duration = Duration::from_secs(15);
/// How long it has in a sandbox, with all that this needs.
const SANDBOX_TIMEOUT: Duration = Duration::from_secs(20);

/// What is to be found out.
#[derive(Debug, Clone)]
pub struct AuthCheck {
    /// What the caller calls it.
    pub name: String,
    /// Which agent it is.
    pub agent: Agent,
    /// Its model, as the CLI names it.
    pub model: Option<String>,
    /// The policy of its runs. Its mode says where it is tried.
    pub policy: Policy,
    /// A repository that may not supply the CLI.
    pub exclude: Option<PathBuf>,
    /// How long it may take; `None` for 15 s on the host and 20 s in a sandbox.
    pub timeout: Option<Duration>,
}

impl AuthCheck {
    /// Tries it. This never takes longer than its timeout and the moment that it takes to end what hangs.
    pub async fn run(&self, node: &Node) -> AuthStatus {
        let verdict = match Environment::of(self.policy.mode) {
            Environment::Host => host::check(node, self).await,
            Environment::Sandbox => sandbox::check(node, self).await,
        };
        self.status(verdict)
    }

    /// What is said without a try, if something is known to be wrong.
    #[must_use]
    pub fn refused(&self, word: AuthWord, message: &str) -> AuthStatus {
        self.status(Verdict::early(word, message))
    }

    fn status(&self, verdict: Verdict) -> AuthStatus {
        AuthStatus {
            agent: self.name.clone(),
            available: verdict.is_available(),
            authenticated: verdict.word == AuthWord::Ok,
            checked_at: iso_time(now_ms()),
            execution_environment: Environment::of(self.policy.mode),
            mode: self.policy.mode,
            status: verdict.word,
            message: verdict.message,
        }
    }

    fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(match Environment::of(self.policy.mode) {
            Environment::Host => HOST_TIMEOUT,
            Environment::Sandbox => SANDBOX_TIMEOUT,
        })
    }

    fn search<'a>(&'a self, node: &'a Node) -> Search<'a> {
        Search {
            path: &node.caller.path,
            home: node.caller.home.as_deref(),
            exclude: self.exclude.as_deref(),
        }
    }
}
