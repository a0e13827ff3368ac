//! What a broker is made with. Everything here comes from its caller; the broker reads no environment.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::{Agent, Credential, RepoUrl, Vendor};

/// What a broker is made with.
#[derive(Clone)]
pub struct Options {
    /// Where the model is and what opens it, asked for at each call so that a renewed login is seen.
    pub secrets: Arc<dyn Secrets>,
    /// Name servers; those of the system without any.
    pub name_servers: Vec<SocketAddr>,
    /// What the models cost.
    pub prices: PriceTable,
    /// What one attempt may use of the broker.
    pub bounds: Bounds,
}

/// Who knows the secrets.
pub trait Secrets: Send + Sync {
    /// Where a vendor's interface is, with what opens it now. `agent` is who asks: a login is for the CLI that it was
    /// made with, and a plain program, which is `None`, has keys alone.
    ///
    /// # Errors
    /// [`Locked`] if there is nothing that opens it.
    fn upstream(&self, vendor: Vendor, agent: Option<Agent>) -> Result<Upstream, Locked>;
    /// What opens a repository.
    ///
    /// # Errors
    /// [`NoGitCredential`] if nothing does.
    fn git(&self, repository: &GitRepository<'_>) -> Result<GitCredential, NoGitCredential>;
}

/// A repository that a credential is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GitRepository<'a> {
    /// Where it is.
    pub url: &'a RepoUrl,
    /// The repository on this machine whose `origin` says so; `None` if the caller did. Whoever made that repository wrote
    /// its `origin`, and would choose what the caller's token opens.
    pub origin_of: Option<&'a Path>,
}

/// Why nothing opens a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoGitCredential {
    /// There is no token for its host and path.
    NoToken,
    /// There is one, and the address comes from the `origin` of a local repository that the caller did not trust.
    Unnamed,
}

/// Why nothing opens a vendor's interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locked {
    /// There is neither key nor login.
    NoKey,
    /// There is a login that opens nothing now: what is wrong with it and what to do, for people.
    Login(String),
}

/// Where a vendor's interface is.
#[derive(Clone)]
pub struct Upstream {
    /// Without `/v1`: `https://api.anthropic.com`, `https://api.openai.com`. A path is kept as a prefix. That of a
    /// [`Credential::ChatGpt`] is whole.
    pub base_url: String,
    /// What opens it.
    pub credential: Credential,
}

/// What opens a git host: a user name and a token.
#[derive(Clone, PartialEq, Eq)]
pub struct GitCredential {
    /// `x-access-token` for most hosts.
    pub user: String,
    /// The token.
    pub token: String,
}

/// What one attempt may use of the broker, so that none can hurt another, and what all of them may.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Connections at a time.
    pub connections: usize,
    /// Connections of all attempts at a time, but for the first few of each, which it always has.
    pub connections_of_all: usize,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Bytes of a request to the model, also after it is decompressed.
    pub body_bytes: usize,
    /// Bytes that requests to the model hold at a time.
    pub held_bytes: usize,
    /// The same for all attempts. More than one of them may hold, so that something is left for the others; each has
    /// some megabytes of its own besides.
    pub held_by_all: usize,
    /// How long a request waits for them.
    pub room_time: Duration,
    /// How long the body of a request to the model may take to arrive. It comes through a socket of this machine.
    pub body_time: Duration,
    /// How long a head may take to arrive.
    pub head_time: Duration,
    /// How long a connection may be silent.
    pub idle_time: Duration,
    /// How long a connection may last.
    pub total_time: Duration,
    /// How long connecting to the outside may take.
    pub connect_time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 256,
            connections_of_all: 512,
            head_bytes: 64 << 10,
            body_bytes: 64 << 20,
            held_bytes: 64 << 20,
            held_by_all: 96 << 20,
            room_time: Duration::from_secs(60),
            body_time: Duration::from_secs(60),
            head_time: Duration::from_secs(10),
            idle_time: Duration::from_secs(600),
            total_time: Duration::from_secs(6 * 3600),
            connect_time: Duration::from_secs(15),
        }
    }
}

/// What a model costs, in US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Input.
    pub input: f64,
    /// Output, thinking included.
    pub output: f64,
    /// Input read from the cache.
    pub cache_read: f64,
    /// Input written to the cache.
    pub cache_write: f64,
    /// The most input tokens, those of the cache included, that a call may have at these rates. With more, all of its input
    /// costs twice as much, and its output half as much again.
    pub long_from: Option<u64>,
}

impl Price {
    /// The rates of a call with so many input tokens in all.
    pub(crate) fn at(&self, input_tokens: u64) -> Self {
        if self.long_from.is_none_or(|from| input_tokens <= from) {
            return *self;
        }
        Self {
            input: self.input * LONG_INPUT_FACTOR,
            output: self.output * LONG_OUTPUT_FACTOR,
            cache_read: self.cache_read * LONG_INPUT_FACTOR,
            cache_write: self.cache_write * LONG_INPUT_FACTOR,
            long_from: None,
        }
    }
}

/// What both vendors charge for long inputs, as a multiple of the usual rates.
const LONG_INPUT_FACTOR: f64 = 2.0;
const LONG_OUTPUT_FACTOR: f64 = 1.5;

/// Prices by the beginning of a model's name; the longest beginning wins.
#[derive(Debug, Clone, Default)]
pub struct PriceTable {
    /// When they were looked up, for people: `2026-10-01`.
    pub as_of: String,
    /// By the beginning of the name.
    pub models: BTreeMap<String, Price>,
}
