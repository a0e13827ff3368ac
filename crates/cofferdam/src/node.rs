//! This process as a node: which backends there are, and what of the caller they are told.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cofferdam_agent::{Profile, profile};
use cofferdam_broker::{Bounds, Broker, GitRepository, Secrets};
use cofferdam_core::{Agent, EngineAddress, NodeId, NodeName, Settings};
use cofferdam_net::Dialer;
use cofferdam_operations::{now_ms, random_bits};
use cofferdam_runner::{
    BrokerAccess, CallerPaths, EnvLookup, Home, Node, NodeOptions, StoreLedger, recovery,
};
use cofferdam_sandbox::{
    Attachment, Backend, ImageAgent, Options, Refusal, Tools, apple, docker, host, native,
};
use cofferdam_store::{ClaimRules, Slots, Store};

use crate::caller::Caller;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::record_place::{open_artifacts, open_store};
use crate::secrets::CallerSecrets;
use crate::{redaction, settings};

/// Variables that say nothing private and that programs work badly without.
const LOCALE: [&str; 4] = ["LANG", "LANGUAGE", "TERM", "TZ"];

/// Where an engine listens, unless somebody says otherwise.
const DEFAULT_ENGINE: &str = "/var/run/docker.sock";

/// What a broker in this process works with. The default has no key, and serves nobody.
#[derive(Clone, Default)]
pub(crate) struct BrokerSetup {
    /// The caller's keys.
    pub(crate) secrets: CallerSecrets,
    /// The caller's settings.
    pub(crate) settings: Settings,
}

impl BrokerSetup {
    /// With the caller's keys and tokens, and these settings. `state` is the folder with the record of what is trusted.
    pub(crate) fn new(
        caller: &Caller,
        secrets: CallerSecrets,
        settings: Settings,
        state: Option<&Path>,
    ) -> Result<Self, Failure> {
        Ok(Self { secrets: secrets.with_git(caller, &settings.git, state)?, settings })
    }

    /// A broker; it does nothing before an attempt is opened.
    pub(crate) fn start(self, ledger: &StoreLedger) -> Broker {
        let options = cofferdam_broker::Options {
            secrets: Arc::new(self.secrets),
            name_servers: self.settings.egress.name_servers,
            prices: settings::prices(&self.settings.prices),
            bounds: Bounds::default(),
        };
        Broker::new(options, Arc::new(ledger.clone()))
    }
}

/// Registers this process as a node, and first of all tells the truth about runs whose process has died.
pub(crate) async fn register(home: &Home, caller: &Caller, broker: BrokerSetup) -> Result<Node, Failure> {
    let store = open_own_store(home, caller).await?;
    let ledger = StoreLedger::new(store.clone(), home.clone(), redaction::know(caller));
    let access = BrokerAccess::Own { broker: broker.clone().start(&ledger), ledger };
    let rules = ClaimRules::of(Slots::of(Some(broker.settings.sandbox.max_concurrency.count())));
    let options = NodeOptions {
        attachment: Attachment::Attached,
        ..options(home, caller, NodeId::new(now_ms(), random_bits()), store, &broker, access, rules)?
    };
    let node = Node::register(options).map_err(|error| {
        Failure::internal("this process cannot be registered in the state folder", &error)
    })?;
    recovery::sweep(&node)
        .await
        .map_err(|error| Failure::internal("clean-up of earlier runs failed", &error))?;
    Ok(node)
}

/// Registers this process as the node of a service. What its former self has left is its dispatcher's to take up.
pub(crate) async fn register_named(
    home: &Home,
    caller: &Caller,
    setup: &BrokerSetup,
    name: &NodeName,
    access: BrokerAccess,
    rules: ClaimRules,
) -> Result<Node, Failure> {
    let id = home
        .node_id(name, now_ms())
        .map_err(|error| Failure::internal("the node's id cannot be kept in the state folder", &error))?;
    let store = open_own_store(home, caller).await?;
    let options = options(home, caller, id, store, setup, access, rules)?;
    Node::register(options).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => Failure::new(
            ExitCode::Refused,
            format!("there is a node named `{name}` in this state folder already"),
        )
        .hint("stop it, or give this one another name: --name second"),
        _ => Failure::internal("this process cannot be registered in the state folder", &error),
    })
}

/// Opens the record for somebody who goes on with its runs. One that was copied here from another state folder is this
/// folder's from now on.
async fn open_own_store(home: &Home, caller: &Caller) -> Result<Store, Failure> {
    let store = open_store(home, caller).await?;
    let place = home
        .place(now_ms())
        .map_err(|error| Failure::internal("the state folder's name cannot be kept", &error))?;
    let relocated = store.relocate(&place).await;
    match relocated.map_err(|error| Failure::internal("the record of runs cannot be taken over", &error))? {
        0 => {}
        runs => tracing::warn!(runs, "the record is a copy of another state folder's: its runs go on here"),
    }
    Ok(store)
}

fn options(
    home: &Home,
    caller: &Caller,
    id: NodeId,
    store: Store,
    setup: &BrokerSetup,
    broker: BrokerAccess,
    rules: ClaimRules,
) -> Result<NodeOptions, Failure> {
    let (secrets, keys) = (setup.secrets.clone(), setup.secrets.clone());
    let paths = describe(caller);
    let sandboxes = sandbox_options(home, caller)
        .map_err(|error| Failure::internal("our own binary cannot be found", &error))?;
    Ok(NodeOptions {
        id,
        home: home.clone(),
        store,
        artifacts: open_artifacts(home, caller)?,
        tools: Tools::new(sandboxes.clone()),
        backends: backends(caller, &setup.settings, sandboxes),
        attachment: Attachment::Detached,
        env: lookup(caller),
        caller: CallerPaths { path: paths.path, home: paths.home },
        broker,
        git: Arc::new(move |url| secrets.git(&GitRepository { url, origin_of: None }).ok()),
        dialer: Dialer::new(&setup.settings.egress.name_servers, Bounds::default().connect_time),
        models: Arc::new(move |work| keys.model_of(work)),
        tool_settings: setup.settings.tools.clone(),
        redactor: redaction::know(caller),
        rules,
        #[cfg(feature = "failpoints")]
        without: without(),
    })
}

fn lookup(caller: &Caller) -> EnvLookup {
    let env: BTreeMap<OsString, OsString> = caller.env.clone();
    Arc::new(move |name| env.get(std::ffi::OsStr::new(name))?.to_str().map(str::to_owned))
}

/// Where the engine is. A value that cannot be read is told to whoever wants a container, and to nobody else.
pub(crate) fn engine_address(caller: &Caller, settings: &Settings) -> Result<EngineAddress, Refusal> {
    let set = settings::docker(caller, settings)
        .map_err(|failure| Refusal::new(failure.message().to_owned(), "correct it, or use --mode native"))?;
    Ok(set.host.unwrap_or_else(|| EngineAddress::Unix(DEFAULT_ENGINE.into())))
}

fn sandbox_options(home: &Home, caller: &Caller) -> std::io::Result<Options> {
    let options = Options::new(home.root().to_owned(), std::env::current_exe()?, describe(caller))
        .with_agents(image_agents());
    #[cfg(feature = "failpoints")]
    let options = options.without(without());
    Ok(options)
}

/// The agents that an image may have, as sandboxes are told of them.
pub(crate) fn image_agents() -> Vec<ImageAgent> {
    let described = |agent: Agent| {
        let Profile { program, title, package, .. } = profile(agent);
        ImageAgent { name: agent.as_str(), program, title, package }
    };
    Agent::ALL.map(described).into()
}

fn backends(caller: &Caller, settings: &Settings, options: Options) -> Vec<Arc<dyn Backend>> {
    let engine = engine_address(caller, settings);
    let container = settings::docker(caller, settings).map(|set| set.container()).unwrap_or_default();
    let native = native::NativeBackend::new(options.clone()).with_storage(settings.sandbox.native.storage);
    let docker = docker::DockerBackend::new(options.clone(), engine).with_container(container);
    let apple = apple::AppleBackend::new(options.clone()).with_container(settings.sandbox.apple.container());
    vec![Arc::new(native), Arc::new(docker), Arc::new(apple), Arc::new(host::HostBackend::new(options))]
}

/// What a test leaves out, to show that it would be missed.
#[cfg(feature = "failpoints")]
fn without() -> Vec<String> {
    let named = std::env::var("COFFERDAM_WITHOUT").unwrap_or_default();
    named.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn describe(caller: &Caller) -> cofferdam_sandbox::Caller {
    let locale = caller.env.iter().filter_map(|(name, value)| {
        let (name, value) = (name.to_str()?, value.to_str()?);
        let known = LOCALE.contains(&name) || name.starts_with("LC_");
        known.then(|| (name.to_owned(), value.to_owned()))
    });
    let path: Vec<PathBuf> =
        caller.var("PATH").map(|path| std::env::split_paths(path).collect()).unwrap_or_default();
    cofferdam_sandbox::Caller { home: caller.home(), path, locale: locale.collect() }
}
