//! Makes what is wanted of the service's processes so, and tells the record how they stand.
//!
//! What is wanted is in the record, where an operator's request is written by whichever API took it. This task reads it when it
//! is woken, and every second. A record that is away changes nothing: what was wanted last goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cofferdam_core::{
    DesiredState, DrainSeconds, Environment, NodeId, ProcessName, ProcessStatus, ValueError, with_causes,
};
use cofferdam_operations::{Error, Operations, now_ms, random_bits};
use cofferdam_runner::{Home, Stop};
use cofferdam_store::{Listens, ProcessReport, ServiceRecord, ServiceReport, Store};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};

use super::child::{Change, Child, Kept};
use super::own_log::{LogOf, log_path};
use super::{ChildState, Instance};
use crate::commands::work::NodeFlags;
use crate::failure::Failure;

/// How often the record is looked at, should a wake be lost.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often the service tells of itself.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// How long the record may take to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How long the last words may take.
const FAREWELL_WITHIN: Duration = Duration::from_secs(2);
/// What a node may take beyond its drain before it is killed.
const BEYOND_DRAIN: Duration = Duration::from_secs(15);
/// Changes that wait to be looked at: a handful at a time.
const CHANGES: usize = 16;

/// What a supervisor works with.
pub(crate) struct SupervisorOptions {
    /// The state folder.
    pub(crate) home: Home,
    /// The record.
    pub(crate) store: Store,
    /// Knows which environment is in force.
    pub(crate) operations: Operations,
    /// Where the API listens.
    pub(crate) listen: SocketAddr,
    /// Whether it keeps processes at all.
    pub(crate) works: bool,
    /// How long a node waits for its runs when it is to stop.
    pub(crate) drain: DrainSeconds,
    /// What the dispatcher is told.
    pub(crate) node: NodeFlags,
    /// What the service says of itself on this machine.
    pub(crate) instance: Arc<Mutex<Instance>>,
}

/// Keeps the processes of one service as an operator wants them.
pub(crate) struct Supervisor {
    options: SupervisorOptions,
    /// Does not wait: the children are looked after whether the record answers or not.
    store: Store,
    program: PathBuf,
    service: ServiceRecord,
    wanted: Wanted,
    children: BTreeMap<ProcessName, Kept>,
    states: BTreeMap<ProcessName, ChildState>,
    /// Which of them the record does not know of yet.
    untold: BTreeSet<ProcessName>,
    report_at: Instant,
    is_ending: bool,
}

/// What the record says.
#[derive(Debug, Default)]
struct Wanted {
    /// What is wanted of each process, and how often that was changed.
    desired: BTreeMap<ProcessName, (DesiredState, u64)>,
    /// Whether tasks run as processes of the machine.
    is_host: bool,
    /// Whether an attempt of one of its nodes is under way.
    has_attempts: bool,
}

impl Supervisor {
    /// A supervisor that has read what is wanted, and has started nothing yet.
    pub(crate) async fn new(options: SupervisorOptions) -> Result<Self, Failure> {
        let failed =
            |attempted: &'static str| move |error: std::io::Error| Failure::internal(attempted, &error);
        let unreadable = |error: Error| Failure::internal("the processes on record cannot be read", &error);
        let now = now_ms();
        let name = &options.node.name;
        let service = ServiceRecord {
            id: options.home.node_id(name, now).map_err(failed("the node's id cannot be kept"))?,
            place: options.home.place(now).map_err(failed("the state folder's name cannot be kept"))?,
            started_at_ms: now,
            seen_at_ms: now,
            report: ServiceReport {
                name: name.to_string(),
                host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
                listen: options.listen.to_string(),
                works: options.works,
            },
        };
        for process in [ProcessName::Dispatcher, ProcessName::Broker] {
            let added = options.store.add_process(&service.id, process).await;
            added.map_err(|error| unreadable(error.into()))?;
        }
        let mut supervisor = Self {
            store: options.store.with_patience(Duration::ZERO),
            program: std::env::current_exe().map_err(failed("our own binary cannot be found"))?,
            service,
            wanted: Wanted::default(),
            children: BTreeMap::new(),
            states: BTreeMap::new(),
            untold: BTreeSet::new(),
            report_at: Instant::now(),
            is_ending: false,
            options,
        };
        supervisor.read().await.map_err(unreadable)?;
        Ok(supervisor)
    }

    /// Keeps the processes until it is to stop and all of them have ended.
    pub(crate) async fn run(mut self, mut asked: watch::Receiver<Stop>) {
        let wakes = self.store.wakes(&NodeId::new(now_ms(), random_bits()), Listens::Worker);
        let mut woken = wakes.count();
        let (tell, mut changes) = mpsc::channel(CHANGES);
        let mut stop = Stop::No;
        loop {
            self.make_so(&tell, stop);
            self.tell().await;
            if self.is_ending && self.children.is_empty() {
                break;
            }
            tokio::select! {
                Some(change) = changes.recv() => self.note(change),
                _ = woken.changed() => {}
                () = sleep(LOOK_EVERY) => {}
                Ok(more) = async { asked.wait_for(|asked| *asked > stop).await.map(|asked| *asked) } => {
                    stop = more;
                    self.is_ending = true;
                }
            }
            if !self.is_ending
                && let Err(error) = self.read().await
            {
                tracing::warn!(error = %with_causes(&error), "the record cannot be read; the processes go on as they are");
            }
        }
        let _ = timeout(FAREWELL_WITHIN, self.store.remove_service(&self.service.id)).await;
    }

    /// Whether a process is to run now.
    pub(crate) fn is_wanted(&self, name: ProcessName) -> bool {
        let has_nodes = || self.children.keys().any(|child| *child != ProcessName::Broker);
        let is_asked_for = self.wanted.is_desired(name) && self.options.works && !self.is_ending;
        match name {
            ProcessName::Dispatcher => is_asked_for,
            // Nobody who has a sandbox is left without a way out.
            ProcessName::Broker => {
                is_asked_for
                    || has_nodes()
                    || (self.wanted.has_attempts && self.options.works && !self.is_ending)
            }
            ProcessName::Node(..) => is_asked_for && self.wanted.is_host,
        }
    }

    async fn read(&mut self) -> Result<(), Error> {
        let reading = async {
            let rows = self.store.processes(&self.service.id).await?;
            let desired: BTreeMap<_, _> =
                rows.into_iter().map(|row| (row.name, (row.desired, row.asked))).collect();
            let environment = self.options.operations.environment().await?;
            let mut wanted =
                Wanted { desired, is_host: environment == Environment::Host, has_attempts: false };
            if !wanted.is_desired(ProcessName::Broker) {
                // A folder that cannot be read keeps the broker where it is.
                let own = self.options.home.nodes_of(&self.options.node.name).ok();
                let live = self.store.live_runs().await?;
                wanted.has_attempts = own.is_none_or(|own| live.iter().any(|run| own.contains(&run.node)));
            }
            Ok::<Wanted, Error>(wanted)
        };
        // One that does not answer is as one that is away.
        if let Ok(wanted) = timeout(ANSWERS_WITHIN, reading).await {
            let wanted = wanted?;
            let is_news = |name: &ProcessName| self.wanted.desired.get(name) != wanted.desired.get(name);
            self.untold.extend(wanted.desired.keys().copied().filter(is_news));
            self.wanted = wanted;
        }
        Ok(())
    }

    /// Starts what is wanted and does not run, and asks the rest to end: nodes first, which makes the broker unneeded.
    fn make_so(&mut self, tell: &mpsc::Sender<Change>, stop: Stop) {
        let names: BTreeSet<ProcessName> =
            self.wanted.desired.keys().chain(self.children.keys()).copied().collect();
        let (brokers, nodes): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| *name == ProcessName::Broker);
        for name in nodes.into_iter().chain(brokers) {
            match (self.children.get(&name), self.is_wanted(name)) {
                (None, true) => self.start(name, tell),
                (Some(child), false) => child.ask(stop.max(Stop::Drain)),
                // It is wanted again: the next one takes up what it has.
                (Some(child), true) if child.is_to_end() => child.ask(Stop::Now),
                (Some(_), true) | (None, false) => {}
            }
        }
    }

    fn start(&mut self, name: ProcessName, tell: &mpsc::Sender<Change>) {
        match self.child(name) {
            Ok(child) => {
                self.children.insert(name, child.keep(tell.clone()));
            }
            Err(error) => {
                let message = Some(error.to_string());
                let state = ChildState { status: ProcessStatus::Failed, message, ..ChildState::default() };
                self.say(name, state);
            }
        }
    }

    fn child(&self, name: ProcessName) -> Result<Child, ValueError> {
        let home = &self.options.home;
        let service = &self.options.node.name;
        let log = self.log(name);
        let arguments: Vec<OsString> = match Home::node_name_of(service, name)? {
            None => vec![
                "broker".into(),
                home.root().into(),
                self.service.id.as_str().into(),
                service.as_str().into(),
            ],
            Some(node) => {
                let mut arguments: Vec<OsString> =
                    vec!["work".into(), "--supervised".into(), name.to_string().into()];
                arguments.extend(["--log".into(), log.clone().into()]);
                let flags = match name {
                    ProcessName::Node(role, _) => NodeFlags {
                        name: node,
                        roles: vec![role],
                        // One task at a time: who wants more of a role starts another.
                        capacity: Some("1".parse().expect("one is a capacity")),
                        drain: self.options.node.drain,
                    },
                    ProcessName::Dispatcher | ProcessName::Broker => self.options.node.clone(),
                };
                arguments.extend(flags.arguments());
                arguments
            }
        };
        Ok(Child {
            name,
            program: self.program.clone(),
            arguments,
            state: home.root().to_owned(),
            log,
            ends_within: Duration::from_secs(self.options.drain.count().into()) + BEYOND_DRAIN,
        })
    }

    fn log(&self, name: ProcessName) -> PathBuf {
        log_path(&self.options.home, LogOf::Process(name), &self.options.node.name)
    }

    fn note(&mut self, Change { name, state }: Change) {
        if state.status == ProcessStatus::Stopped {
            self.children.remove(&name);
        }
        self.say(name, state);
    }

    fn say(&mut self, name: ProcessName, state: ChildState) {
        if self.states.get(&name) == Some(&state) {
            return;
        }
        self.states.insert(name, state.clone());
        self.untold.insert(name);
        let mut instance = self.options.instance.lock().unwrap_or_else(PoisonError::into_inner);
        instance.say(|served| {
            served.children.insert(name, state);
        });
    }

    /// Tells the record what it does not know yet, and that the service lives. What cannot be told now is told later.
    async fn tell(&mut self) {
        let telling = async {
            if self.report_at <= Instant::now() {
                self.service.seen_at_ms = now_ms();
                self.store.report_service(&self.service).await?;
                self.report_at = Instant::now() + REPORT_EVERY;
            }
            while let Some(name) = self.untold.first().copied() {
                self.store.report_process(&self.service.id, name, &self.report(name)).await?;
                self.untold.remove(&name);
            }
            Ok::<(), Error>(())
        };
        match timeout(ANSWERS_WITHIN, telling).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(error = %with_causes(&error), "the processes could not be told of");
            }
            Err(_) => tracing::debug!("the record does not answer"),
        }
    }

    fn report(&self, name: ProcessName) -> ProcessReport {
        let state = self.states.get(&name).cloned().unwrap_or_default();
        let node = Home::node_name_of(&self.options.node.name, name).ok().flatten();
        ProcessReport {
            heard: self.wanted.desired.get(&name).map_or(0, |(_, asked)| *asked),
            status: state.status,
            pid: state.pid,
            restarts: state.restarts,
            started_at_ms: state.started_at_ms,
            finished_at_ms: state.finished_at_ms,
            exit_code: state.exit_code,
            signal: state.signal,
            message: state.message,
            log_path: self.log(name).display().to_string(),
            node: node.and_then(|node| self.options.home.node_id(&node, now_ms()).ok()),
        }
    }
}

impl Wanted {
    fn is_desired(&self, name: ProcessName) -> bool {
        self.desired.get(&name).is_some_and(|(desired, _)| *desired == DesiredState::Running)
    }
}
