//! One process that executes runs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_broker::GitCredential;
use cofferdam_core::{Mode, NodeId, PlaceId, Redactor, RepoUrl, Source, ToolSettings};
use cofferdam_net::Dialer;
use cofferdam_operations::Operations;
pub use cofferdam_operations::now_ms;
use cofferdam_sandbox::{Attachment, Backend, Tools};
use cofferdam_store::{ArtifactStore, ClaimRules, Listens, Owner, Store, Wakes};
use tokio::sync::{Semaphore, watch};

use crate::egress::BrokerAccess;
use crate::home::Home;
use crate::installation::Search;
use crate::model_choice::ModelLookup;
use crate::node_lock::{lock, lock_path};

/// Looks up a variable of the caller's environment, which only the binary reads.
pub type EnvLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How long an attempt waits for a record that is away. A service outlives its database's restarts: whoever waits too long
/// is ended because its lease runs out. A person at a terminal is told soon.
fn patience(attachment: Attachment) -> Duration {
    match attachment {
        Attachment::Detached => Duration::from_secs(3600),
        Attachment::Attached => Duration::from_secs(60),
    }
}

/// As many sealed tools as there are processors, and two where there is one: a page that hangs must not stop all others.
fn tool_slots() -> usize {
    std::thread::available_parallelism().map_or(2, |processors| processors.get().max(2))
}

/// How a [`Node`] is set up.
pub struct NodeOptions {
    /// Its name. A node that is restarted under the same name adopts its own runs.
    pub id: NodeId,
    /// The state folder.
    pub home: Home,
    /// The record of runs.
    pub store: Store,
    /// Where the files go that runs leave.
    pub artifacts: ArtifactStore,
    /// The backends that runs may ask for.
    pub backends: Vec<Arc<dyn Backend>>,
    /// Whether sandboxes outlive this process.
    pub attachment: Attachment,
    /// The caller's environment.
    pub env: EnvLookup,
    /// Where the caller's programs are.
    pub caller: CallerPaths,
    /// Who serves the way out of sandboxes.
    pub broker: BrokerAccess,
    /// What opens git hosts.
    pub git: GitLookup,
    /// Connects to git hosts on behalf of others.
    pub dialer: Dialer,
    /// Makes the sandboxes in which git reads what those hosts say.
    pub tools: Tools,
    /// What opens models.
    pub models: ModelLookup,
    /// What the tools of direct runs may reach.
    pub tool_settings: ToolSettings,
    /// Knows the caller's secrets. What an attempt may see is added for that attempt.
    pub redactor: Redactor,
    /// Which runs it may have, and how many attempts may be under way at once, together with those of all other nodes.
    pub rules: ClaimRules,
    /// Protections that tests leave out, to show that they would be missed.
    #[cfg(feature = "failpoints")]
    pub without: Vec<String>,
}

/// Finds what opens a repository that the caller named, if anything does.
pub type GitLookup = Arc<dyn Fn(&RepoUrl) -> Option<GitCredential> + Send + Sync>;

/// Where the caller's programs are.
#[derive(Debug, Clone, Default)]
pub struct CallerPaths {
    /// The caller's PATH.
    pub path: Vec<PathBuf>,
    /// The caller's home.
    pub home: Option<PathBuf>,
}

impl CallerPaths {
    /// Where programs for a run are looked for: not in its own repository.
    pub(crate) fn search<'a>(&'a self, source: &'a Source) -> Search<'a> {
        let exclude = match source {
            Source::Local { path } => Some(path.as_path()),
            Source::Git { .. } | Source::Empty => None,
        };
        Search { path: &self.path, home: self.home.as_deref(), exclude }
    }
}

/// One process that executes runs.
pub struct Node {
    pub(crate) id: NodeId,
    pub(crate) place: PlaceId,
    pub(crate) home: Home,
    pub(crate) store: Store,
    pub(crate) artifacts: ArtifactStore,
    pub(crate) backends: BTreeMap<Mode, Arc<dyn Backend>>,
    pub(crate) attachment: Attachment,
    pub(crate) env: EnvLookup,
    pub(crate) caller: CallerPaths,
    pub(crate) broker: BrokerAccess,
    pub(crate) git: GitLookup,
    pub(crate) dialer: Dialer,
    pub(crate) tools: Tools,
    pub(crate) models: ModelLookup,
    pub(crate) tool_settings: ToolSettings,
    /// How many sealed tools read at the same time: each takes a processor, and up to a gigabyte of memory.
    pub(crate) tool_slots: Arc<Semaphore>,
    pub(crate) redactor: Redactor,
    pub(crate) rules: ClaimRules,
    #[cfg(feature = "failpoints")]
    without: Vec<String>,
    /// Changes with every wake. A hint: whoever misses it polls.
    pub(crate) wakes: watch::Receiver<u64>,
    _listening: Wakes,
    /// Locked as long as this process lives; the kernel unlocks it however the process ends.
    _lock: File,
}

impl Node {
    /// What is done on somebody's behalf goes through here. Whoever has a node is bound by no setting of the service.
    #[must_use]
    pub fn operations(&self) -> Operations {
        Operations::for_own_use(self.store.clone())
    }

    /// Registers this process as a node. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If another living process has the same name, or the state folder cannot be written.
    pub fn register(options: NodeOptions) -> io::Result<Self> {
        let lock = lock(&lock_path(&options.home, &options.id))?;
        let place = options.home.place(now_ms())?;
        let wakes = options.store.wakes(&options.id, Listens::Worker);
        Ok(Self {
            id: options.id,
            place,
            home: options.home,
            store: options.store.with_patience(patience(options.attachment)),
            artifacts: options.artifacts,
            backends: options.backends.into_iter().map(|backend| (backend.mode(), backend)).collect(),
            attachment: options.attachment,
            env: options.env,
            caller: options.caller,
            broker: options.broker,
            git: options.git,
            dialer: options.dialer,
            tools: options.tools,
            models: options.models,
            tool_settings: options.tool_settings,
            tool_slots: Arc::new(Semaphore::new(tool_slots())),
            redactor: options.redactor,
            rules: options.rules,
            #[cfg(feature = "failpoints")]
            without: options.without,
            wakes: wakes.count(),
            _listening: wakes,
            _lock: lock,
        })
    }

    /// The node's name.
    #[must_use]
    pub fn id(&self) -> &NodeId {
        &self.id
    }

    /// The node and its state folder, as the record knows who holds a run.
    pub(crate) fn owner(&self) -> Owner {
        Owner { node: self.id.clone(), place: self.place.clone() }
    }

    /// Whether its record is shared with nodes of other machines, which take over what it does not renew.
    pub(crate) fn is_shared(&self) -> bool {
        match &self.store {
            Store::Sqlite(_) => false,
            Store::Postgres(_) => true,
        }
    }

    /// Where the files are that runs leave.
    #[must_use]
    pub fn artifacts(&self) -> &ArtifactStore {
        &self.artifacts
    }

    /// The record for whoever decides by whether it answers now.
    pub(crate) fn impatient_store(&self) -> Store {
        self.store.with_patience(Duration::ZERO)
    }

    /// The record of runs. While it is away, what is asked of it waits.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The state folder.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// The backend of a mode, if this node has one.
    #[must_use]
    pub fn backend(&self, mode: Mode) -> Option<&dyn Backend> {
        self.backends.get(&mode).map(|backend| &**backend)
    }

    /// Whether a test has left this protection out.
    pub(crate) fn is_without(&self, protection: &str) -> bool {
        #[cfg(feature = "failpoints")]
        return self.without.iter().any(|name| name == protection);
        #[cfg(not(feature = "failpoints"))]
        {
            let _ = protection;
            false
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = fs::remove_file(lock_path(&self.home, &self.id));
    }
}
