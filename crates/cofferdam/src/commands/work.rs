//! `cofferdam work`: a node that runs tasks of the queue.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use cofferdam_core::{
    AgentName, Capacity, DiskSpace, DrainSeconds, Mode, NodeName, ProcessName, RetentionSettings, Role,
    Settings,
};
use cofferdam_runner::{
    BrokerAccess, BrokerProcess, Dispatcher, DispatcherOptions, Home, ModesRule, Node, Stop, now_ms,
    retention::{self, Removed},
};
use cofferdam_store::{ClaimRules, Slots, WorkTaken, disk_space};
use tokio::sync::watch;

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::followed_config::FollowedConfig;
use crate::node::{BrokerSetup, register_named};
use crate::node_requests::Answering;
use crate::secrets::CallerSecrets;
use crate::service::{keep_small, supervisor_gone, until_asked_to_stop};
use crate::settings;

/// What a node is told.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeFlags {
    /// What the node is called. Started again under its name, it goes on with its own runs
    #[arg(long, value_name = "NAME", default_value_t)]
    pub(crate) name: NodeName,

    /// The kinds of work that it takes: `worker`, `tester`, `docser`; all of them without this
    #[arg(long, value_name = "ROLE,…", value_delimiter = ',')]
    pub(crate) roles: Vec<Role>,

    /// How many runs it has at the same time, over `service.capacity`
    #[arg(long, value_name = "N")]
    pub(crate) capacity: Option<Capacity>,

    /// How long it waits for its runs when it is told to stop, over `service.drain_seconds`
    #[arg(long, value_name = "SECONDS")]
    pub(crate) drain: Option<DrainSeconds>,
}

/// Run tasks of the queue, beside a `cofferdam serve` or on another machine
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    #[command(flatten)]
    node: NodeFlags,

    /// A supervisor has started it as this process: it ends with that, and has its broker from there
    #[arg(long, hide = true, value_name = "PROCESS", requires = "log")]
    supervised: Option<ProcessName>,

    /// Where what it says goes
    #[arg(long, hide = true, value_name = "PATH")]
    log: Option<PathBuf>,
}

impl NodeFlags {
    /// The same as arguments.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["--name".into(), self.name.as_str().into()];
        if !self.roles.is_empty() {
            let roles: Vec<&str> = self.roles.iter().map(|role| role.as_str()).collect();
            arguments.extend(["--roles".into(), roles.join(",").into()]);
        }
        if let Some(capacity) = self.capacity {
            arguments.extend(["--capacity".into(), capacity.count().to_string().into()]);
        }
        if let Some(drain) = self.drain {
            arguments.extend(["--drain".into(), drain.count().to_string().into()]);
        }
        arguments
    }
}

/// Works until it is told to stop.
pub(crate) async fn run(args: &WorkArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let failed = |attempted: &'static str| move |error: std::io::Error| Failure::internal(attempted, &error);
    let is_supervised = args.supervised.is_some();
    let stop = requests(is_supervised).map_err(failed("what asks for an end cannot be watched"))?;
    let effective = settings::read_for_service(caller)?;
    let settings = effective.settings.clone();
    let home = caller.open_state()?;
    let name = &args.node.name;
    if let Some(log) = &args.log {
        keep_small(log.clone());
    }
    let access = match is_supervised {
        true => BrokerAccess::Beside,
        false => BrokerAccess::Apart(broker(&home, name)?),
    };
    let config = FollowedConfig::default();
    let secrets = CallerSecrets::of(caller)?.following(caller, config.clone());
    let setup = BrokerSetup::new(caller, secrets, settings.clone(), Some(home.root()))?;
    let claims = rules(&args.node.roles, &settings);
    let node = register_named(&home, caller, &setup, name, access, claims).await?;
    let options = DispatcherOptions {
        capacity: capacity(&args.node, &settings),
        direct_capacity: settings.service.direct_capacity.count() as usize,
        modes: modes(args.supervised),
        drain: Duration::from_secs(args.node.drain.unwrap_or(settings.service.drain_seconds).count().into()),
        name: name.to_string(),
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    tracing::info!(node = %name, node.id = %node.id(), capacity = options.capacity, "working");
    if !is_supervised {
        say_what_is_kept(&settings.retention);
    }
    let node = Arc::new(node);
    let forgetting = tokio::spawn(forget(Arc::clone(&node), settings.retention.clone()));
    config.read(node.store()).await;
    let following = tokio::spawn(config.clone().follow(node.store().clone()));
    let (rules_of, roles) = (config.clone(), args.node.roles.clone());
    let store = node.store().clone();
    let answering = Answering { home, store, caller: caller.clone(), settings, config };
    Dispatcher::new(node, options)
        .answering(answering.into_task())
        .claiming_by(Arc::new(move || rules(&roles, &rules_of.now().over(&effective).settings)))
        .run(stop)
        .await;
    forgetting.abort();
    following.abort();
    Ok(ExitCode::Succeeded)
}

/// Whoever starts a service is told that it removes things, and where to say otherwise.
pub(crate) fn say_what_is_kept(retention: &RetentionSettings) {
    tracing::info!(kept = %retention, "what is older or more is removed; `retention` in settings.json changes that");
}

/// Removes what was kept long enough, again and again.
async fn forget(node: Arc<Node>, retention: RetentionSettings) {
    // What can be fetched again goes at once, since a service may be restarted every hour.
    retention::clear_daily(node.home(), &retention, now_ms()).await;
    let mut wait = retention::until_next_round(node.home(), &retention, now_ms());
    loop {
        tokio::time::sleep(wait).await;
        wait = retention::EVERY;
        let removed =
            retention::run_once(node.store(), node.artifacts(), node.home(), &retention, now_ms()).await;
        match removed {
            Ok(removed) if removed == Removed::default() => {}
            Ok(removed) => tracing::info!(?removed, "what was kept long enough is removed"),
            Err(error) => tracing::warn!(%error, "what was kept long enough could not be removed"),
        }
        retention::note_round(node.home(), &retention, now_ms());
        if let Some(space) = disk_space(node.home().root()).ok().filter(DiskSpace::is_low) {
            tracing::warn!(disk = space.words(), "the disk of the state folder is nearly full");
        }
    }
}

/// Signals drain; without a supervisor there is nothing to wait for: whoever is started next goes on with what runs.
fn requests(supervised: bool) -> std::io::Result<watch::Receiver<Stop>> {
    let stop = until_asked_to_stop()?;
    let asked = stop.subscribe();
    if supervised {
        let gone = supervisor_gone()?;
        tokio::spawn(async move {
            gone.await;
            tracing::info!("the supervisor is gone");
            stop.send_replace(Stop::Now);
        });
    }
    Ok(asked)
}

/// The broker of a node without a supervisor: the node keeps it, and it outlives the node's restarts.
fn broker(home: &Home, name: &NodeName) -> Result<BrokerProcess, Failure> {
    let failed = |attempted: &'static str| move |error: std::io::Error| Failure::internal(attempted, &error);
    let program = std::env::current_exe().map_err(failed("our own binary cannot be found"))?;
    let node = home.node_id(name, now_ms()).map_err(failed("the node's id cannot be kept"))?;
    let command = [program.into(), "broker".into(), home.root().into(), node.as_str().into()];
    Ok(BrokerProcess::new(command.to_vec()))
}

/// A node that an operator has started for a role runs its tasks as processes of the machine; any other what it can.
fn modes(supervised: Option<ProcessName>) -> ModesRule {
    match supervised {
        Some(ProcessName::Node(..)) => ModesRule::Only(Mode::Host),
        Some(ProcessName::Dispatcher | ProcessName::Broker) | None => ModesRule::Usable,
    }
}

fn capacity(flags: &NodeFlags, settings: &Settings) -> usize {
    let asked = flags.capacity.or(settings.service.capacity).map(|capacity| capacity.count() as usize);
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into))
}

/// Which runs it may have, as the settings say it.
fn rules(roles: &[Role], settings: &Settings) -> ClaimRules {
    let service = &settings.service;
    let agents: BTreeMap<AgentName, NonZeroU32> = settings
        .agents
        .iter()
        .filter_map(|(name, agent)| Some((name.clone(), agent.max_concurrency?.count())))
        // Without a limit of its own, although all others have one.
        .map(|(name, most)| (name, NonZeroU32::new(most).unwrap_or(NonZeroU32::MAX)))
        .collect();
    ClaimRules {
        roles: roles.to_vec(),
        modes: Vec::new(),
        work: WorkTaken::Any,
        slots: Slots::of(Some(settings.sandbox.max_concurrency.count())),
        per_project: Slots::of(Some(service.max_concurrency_per_project.count())),
        per_agent: Slots::of(Some(service.max_concurrency_per_agent.count())),
        agents,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agents_own_bound_goes_before_that_of_all() {
        let settings: Settings = serde_json::from_value(serde_json::json!({
            "service": {"max_concurrency_per_agent": 2, "max_concurrency_per_project": 3},
            "agents": {
                "one": {"provider": "codex", "max_concurrency": 1},
                "free": {"provider": "codex", "max_concurrency": 0},
                "plain": {"provider": "codex"}
            }
        }))
        .unwrap();
        let rules = rules(&[Role::Tester], &settings);
        assert_eq!(rules.roles, [Role::Tester]);
        assert_eq!(rules.per_agent, Slots::of(Some(2)));
        assert_eq!(rules.per_project, Slots::of(Some(3)));
        let most = |name: &str| rules.agents.get(name).map(|most| most.get());
        assert_eq!((most("one"), most("free"), most("plain")), (Some(1), Some(u32::MAX), None));
    }
}
