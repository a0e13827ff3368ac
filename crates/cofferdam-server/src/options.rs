//! What a service is started with.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_api::TrustList;
use cofferdam_core::{Agent, AllowedMode, Effective, Mode, Network, NodeId, PlaceId, Support};
use cofferdam_store::Store;

use crate::artifacts::RunFiles;
use crate::process_logs::ProcessLogs;

const MODES: [Mode; 4] = [Mode::Host, Mode::Native, Mode::Docker, Mode::Apple];

/// What a service is started with.
pub struct Options {
    /// The record of runs.
    pub store: Store,
    /// The settings, as they are when it starts.
    pub settings: Arc<Effective>,
    /// The state folder of this machine: runs on its paths are for its own nodes.
    pub place: PlaceId,
    /// That folder, which no run may see; `None` where there is none.
    pub state_folder: Option<PathBuf>,
    /// The home of the user who runs the nodes, which no run may see as a whole.
    pub home: Option<PathBuf>,
    /// What an agent can be asked for.
    pub support_of: fn(Agent) -> Support,
    /// The name under which this process hears of changes.
    pub node: NodeId,
    /// The id of this service's name in its state folder: whose processes are meant unless another service is named.
    pub service: NodeId,
    /// Reads the logs of this service's processes.
    pub logs: Arc<dyn ProcessLogs>,
    /// What attempts have left.
    pub artifacts: Arc<dyn RunFiles>,
    /// Lists what of repositories is trusted on this machine.
    pub trust: TrustLookup,
    /// The address that it listens on.
    pub listen: SocketAddr,
    /// Who needs a key.
    pub keys: KeyRule,
    /// How much of everything is taken at once.
    pub bounds: Bounds,
}

/// Lists what of repositories is trusted, or says why it cannot. It reads files.
pub type TrustLookup = Arc<dyn Fn() -> Result<TrustList, String> + Send + Sync>;

/// Who needs a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyRule {
    /// Everybody.
    #[default]
    Always,
    /// Everybody but callers of this machine: `COFFERDAM_ALLOW_INSECURE_SYSTEM_CONTROL=true`.
    NotOnLoopback,
}

/// How much of everything is taken at once, so that no caller can take all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// Open connections.
    pub connections: usize,
    /// Of these, streams of events.
    pub streams: usize,
    /// And calls that wait for the end of a run.
    pub waiting: usize,
    /// Bytes of a body.
    pub body_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of all headers of a request.
    pub header_bytes: usize,
    /// How long the head of a request may take to arrive; also how long an idle connection is kept.
    pub head: Duration,
    /// How long the body may take.
    pub body: Duration,
    /// How long an answer may take that is neither a stream nor waits for a run.
    pub answer: Duration,
    /// How long a reader may take nothing of what is sent to it.
    pub stalled: Duration,
    /// How often a stream says that it lives.
    pub heartbeat: Duration,
    /// How long connections have when the service stops.
    pub drain: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 2_048,
            streams: 1_500,
            waiting: 400,
            body_bytes: 1 << 20,
            headers: 64,
            header_bytes: 32 << 10,
            head: Duration::from_secs(15),
            body: Duration::from_secs(30),
            answer: Duration::from_secs(30),
            stalled: Duration::from_secs(30),
            heartbeat: Duration::from_secs(15),
            drain: Duration::from_secs(5),
        }
    }
}

/// Why a service does not start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// Keys were switched off where others can call.
    #[error("callers without a key were asked to be let in on {0}, which is not a loopback address")]
    OpenToOthers(SocketAddr),
    /// Keys were switched off although what a caller may choose has no walls.
    #[error("callers without a key were asked to be let in while service.allowed_modes has `{0}`")]
    NoWalls(AllowedMode),
}

impl Options {
    /// Refuses what would let anybody on this machine, or any web page in its browser, run anything on it.
    pub(crate) fn check(&self) -> Result<(), StartError> {
        match self.keys {
            KeyRule::Always => Ok(()),
            KeyRule::NotOnLoopback if !self.listen.ip().is_loopback() => {
                Err(StartError::OpenToOthers(self.listen))
            }
            KeyRule::NotOnLoopback => match self.without_walls() {
                Some(what) => Err(StartError::NoWalls(what)),
                None => Ok(()),
            },
        }
    }

    /// What a caller without a key could choose that keeps it from nothing.
    fn without_walls(&self) -> Option<AllowedMode> {
        let is_open = |allowed: &&AllowedMode| MODES.iter().any(|mode| allowed.allows(*mode, Network::Open));
        self.settings.settings.service.allowed_modes.iter().find(is_open).copied()
    }
}
