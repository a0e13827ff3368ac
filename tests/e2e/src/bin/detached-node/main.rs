//! A node as a service runs it: executes detached runs until it is told to stop, or killed.
//!
//! `detached-node STATE NODE BINARY CAPACITY`

mod breakable;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use breakable::Breakable;
use cofferdam_agent::profile;
use cofferdam_broker::GitCredential;
use cofferdam_core::{EngineAddress, Login, Redactor, Vendor, Work};
use cofferdam_runner::logins::{LoginPlaces, Logins};
use cofferdam_runner::{
    BrokerAccess, BrokerProcess, CallerPaths, Dispatcher, DispatcherOptions, Home, ModelChoice, ModesRule,
    NoModel, Node, NodeOptions, Stop, now_ms,
};
use cofferdam_sandbox::{Attachment, Backend, Caller, Options, Tools, apple, docker, host, native};
use cofferdam_store::{ClaimRules, Slots, Store};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &'static str| arguments.next().context(what);
    let home = Home::open(&PathBuf::from(next("a state folder")?))?;
    let id_text = next("a node")?;
    let id = id_text.parse().context("a node's id")?;
    let binary = PathBuf::from(next("a binary")?);
    let capacity = next("a capacity")?.parse()?;
    let broker = [binary.as_os_str(), "broker".as_ref(), home.root().as_os_str()];
    let broker = broker.into_iter().map(ToOwned::to_owned).chain([OsString::from(id_text)]).collect();
    let sandboxes = sandbox_options(&home, &binary);
    let node = Node::register(NodeOptions {
        id,
        store: Store::open_sqlite(&home.database()).await?,
        artifacts: cofferdam_store::ArtifactStore::Folder,
        backends: backends(sandboxes.clone()).into_iter().map(breakable).collect(),
        home,
        attachment: Attachment::Detached,
        env: Arc::new(|name| std::env::var(name).ok()),
        caller: CallerPaths { path: search_path(), home: std::env::var_os("HOME").map(PathBuf::from) },
        broker: BrokerAccess::Apart(BrokerProcess::new(broker)),
        git: Arc::new(|_| git_token()),
        dialer: cofferdam_net::Dialer::new(&[], std::time::Duration::from_secs(15)),
        tools: Tools::new(sandboxes),
        models: Arc::new(model),
        tool_settings: cofferdam_core::ToolSettings::default(),
        redactor: Redactor::default(),
        rules: ClaimRules::of(Slots::of(max_concurrency())),
        without: Vec::new(),
    })?;
    let (stop, stopped) = watch::channel(Stop::No);
    let mut terminate = signal(SignalKind::terminate())?;
    println!("ready");
    tokio::spawn(async move {
        terminate.recv().await;
        stop.send_replace(Stop::Now);
        // The channel stays open: a sender that is gone would look like a wait that failed.
        std::future::pending::<()>().await;
    });
    let options = DispatcherOptions {
        capacity,
        direct_capacity: capacity,
        modes: ModesRule::Any,
        drain: std::time::Duration::ZERO,
        name: "test".to_owned(),
        host: "test".to_owned(),
        version: "0".to_owned(),
    };
    Dispatcher::new(Arc::new(node), options).run(stopped).await;
    Ok(())
}

/// A backend that makes no sandbox as long as a file is there, if the test names one.
fn breakable(backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
    match std::env::var_os("TEST_BROKEN_WHILE") {
        Some(path) => Arc::new(Breakable { backend, broken_while: path.into() }),
        None => backend,
    }
}

/// How many attempts may run at once, together with those of others.
fn max_concurrency() -> Option<u32> {
    std::env::var("TEST_MAX_CONCURRENCY").ok()?.parse().ok()
}

fn search_path() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default()
}

/// A key, or the login of the agent's own CLI.
fn model(work: &Work) -> Result<Option<ModelChoice>, NoModel> {
    let (cli, vendors) = match work {
        Work::Program { .. } => return Ok(None),
        Work::Direct(_) => (None, &[Vendor::Anthropic][..]),
        Work::Spec(setup) => (Some(setup.agent), (profile(setup.agent).vendors)(setup.model.as_deref())),
        Work::Agent { agent, setup } => (Some(*agent), (profile(*agent).vendors)(setup.model.as_deref())),
    };
    let has_key =
        |vendor: &&Vendor| std::env::var_os(vendor.key_variable()).is_some_and(|key| !key.is_empty());
    if let Some(&vendor) = vendors.iter().find(has_key) {
        return Ok(Some(ModelChoice { vendor, login: Login::Key }));
    }
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let logins =
        Logins::new(LoginPlaces::of(home.as_deref(), |name| std::env::var_os(name).map(PathBuf::from)));
    let choice = |vendor: &Vendor| {
        let login = logins.current(cli?, *vendor, now_ms()).ok()?.login;
        Some(ModelChoice { vendor: *vendor, login })
    };
    let none = || NoModel { message: "there is no key".to_owned(), hint: "log in".to_owned() };
    vendors.iter().find_map(choice).map(Some).ok_or_else(none)
}

fn engine() -> EngineAddress {
    let named = std::env::var("DOCKER_HOST").ok().and_then(|address| address.parse().ok());
    named.unwrap_or_else(|| EngineAddress::Unix("/var/run/docker.sock".into()))
}

fn sandbox_options(home: &Home, binary: &std::path::Path) -> Options {
    let caller = Caller {
        home: std::env::var_os("HOME").map(PathBuf::from),
        path: search_path(),
        locale: Default::default(),
    };
    Options::new(home.root().to_owned(), binary.to_owned(), caller)
}

fn backends(options: Options) -> Vec<Arc<dyn Backend>> {
    vec![
        Arc::new(native::NativeBackend::new(options.clone())),
        Arc::new(docker::DockerBackend::new(options.clone(), Ok(engine()))),
        Arc::new(apple::AppleBackend::new(options.clone())),
        Arc::new(host::HostBackend::new(options)),
    ]
}

/// The same that the broker finds in this environment.
fn git_token() -> Option<GitCredential> {
    let token = std::env::var("COFFERDAM_GIT_TOKEN").ok().filter(|token| !token.is_empty())?;
    Some(GitCredential { user: "x-access-token".to_owned(), token })
}
