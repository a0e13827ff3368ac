//! The role `broker STATE NODE [NAME]`: a broker in a process of its own, beside nodes whose runs outlive it. With the name
//! of a service it serves every node of that service, whose supervisor keeps it, and it ends with that; without one it is the
//! broker of one node, which keeps it, and it ends when nobody needs it.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use cofferdam_core::{NodeId, NodeName, ProcessName};
use cofferdam_operations::{now_ms, random_bits};
use cofferdam_runner::{BrokerKeeper, BrokerService, Home, Stop, StoreLedger};
use rustix::fs::{FlockOperation, flock};
use tokio::sync::watch;

use crate::caller::Caller;
use crate::failure::Failure;
use crate::followed_config::FollowedConfig;
use crate::node::BrokerSetup;
use crate::record_place::open_store;
use crate::secrets::CallerSecrets;
use crate::service::{LogOf, keep_small, log_path, supervisor_gone, until_asked_to_stop};
use crate::{redaction, settings, terminal};

/// Serves until nobody needs it, or its supervisor is gone.
pub(crate) fn main(state: &Path, node: &str, supervised: Option<&str>) -> ExitCode {
    match start(state, node, supervised) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            terminal::write_stderr(&failure.render());
            ExitCode::FAILURE
        }
    }
}

fn start(state: &Path, node: &str, supervised: Option<&str>) -> Result<(), Failure> {
    let caller = Caller::of_this_process()?;
    let unreadable =
        |error: &dyn std::error::Error| Failure::internal("the name of the node cannot be read", error);
    let name = supervised.map(str::parse::<NodeName>).transpose().map_err(|error| unreadable(&error))?;
    crate::install_tracing(&caller, if name.is_some() { crate::SERVICE_LOG } else { crate::COMMAND_LOG });
    let node: NodeId = node.parse().map_err(|error| unreadable(&error))?;
    let home =
        Home::open(state).map_err(|error| Failure::internal("the state folder cannot be used", &error))?;
    let settings = settings::read_in(home.root())?;
    let config = FollowedConfig::default();
    let secrets = CallerSecrets::of(&caller)?.following(&caller, config.clone());
    let setup = BrokerSetup::new(&caller, secrets, settings, Some(home.root()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal("the runtime could not be started", &error))?;
    runtime.block_on(serve(home, node, name, setup, &caller, config))
}

/// One broker of a node listens. The kernel drops the lock with the process, however that ends; until then the next one
/// waits here with everything else ready, and takes over at once.
async fn lock(home: &Home, node: &NodeId) -> std::io::Result<File> {
    let path = home.brokers().join(format!("{node}.lock"));
    let locked = tokio::task::spawn_blocking(move || {
        let lock = File::options().create(true).truncate(false).write(true).open(path)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        Ok(lock)
    });
    locked.await.map_err(std::io::Error::other)?
}

async fn serve(
    home: Home,
    node: NodeId,
    name: Option<NodeName>,
    setup: BrokerSetup,
    caller: &Caller,
    config: FollowedConfig,
) -> Result<(), Failure> {
    let stopped =
        requests(name.as_ref()).map_err(|error| Failure::internal("signals cannot be received", &error))?;
    if let Some(name) = &name {
        keep_small(log_path(&home, LogOf::Process(ProcessName::Broker), name));
    }
    let is_supervised = name.is_some();
    let store = open_store(&home, caller).await?;
    let ledger = StoreLedger::new(store.clone(), home.clone(), redaction::know(caller));
    let mut stops = stopped.clone();
    let lock = tokio::select! {
        lock = lock(&home, &node) => lock,
        // Whoever waits for its turn has nothing to finish. The thread that waits ends with the process.
        _ = stops.wait_for(|stop| *stop) => std::process::exit(0),
    };
    let lock = lock.map_err(|error| Failure::internal("the broker's lock cannot be taken", &error))?;
    config.read(&store).await;
    let following = tokio::spawn(config.follow(store.clone()));
    let service = BrokerService {
        broker: setup.start(&ledger),
        own: NodeId::new(now_ms(), random_bits()),
        keeper: name.map_or(BrokerKeeper::Node(node), BrokerKeeper::Supervisor),
        home,
        // Whoever asks it to end must not wait for a database that is away; what was spent is written all the same.
        store: store.with_patience(std::time::Duration::ZERO),
        lock,
    };
    let retired =
        service.run(stopped).await.map_err(|error| Failure::internal("the broker cannot go on", &error))?;
    if is_supervised {
        tell_retired().map_err(|error| Failure::internal("the supervisor cannot be told", &error))?;
    }
    retired.finish().await;
    following.abort();
    Ok(())
}

/// Our supervisor has the other end of our stdout: that it ends means that the next broker is to listen, while we finish
/// what is in flight.
fn tell_retired() -> std::io::Result<()> {
    rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    Ok(())
}

/// True once it is to end.
fn requests(name: Option<&NodeName>) -> std::io::Result<watch::Receiver<bool>> {
    let (stop, stopped) = watch::channel(false);
    let mut asked = until_asked_to_stop()?.subscribe();
    let gone = name.map(|_| supervisor_gone()).transpose()?;
    tokio::spawn(async move {
        let gone = async {
            match gone {
                Some(gone) => gone.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = asked.wait_for(|stop| *stop != Stop::No) => {}
            () = gone => tracing::info!("the supervisor is gone"),
        }
        stop.send_replace(true);
        // The channel stays open: a sender that is gone would look like a wait that failed.
        std::future::pending::<()>().await;
    });
    Ok(stopped)
}
