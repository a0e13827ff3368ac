//! The role `broker STATE NODE`: a broker in a process of its own, beside a node whose runs outlive it.

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use cofferdam_core::NodeId;
use cofferdam_runner::{BrokerService, Home, StoreLedger};
use rustix::fs::{FlockOperation, flock};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::caller::{Caller, now_ms, random_bits};
use crate::failure::Failure;
use crate::node::BrokerSetup;
use crate::record_place::open_store;
use crate::secrets::CallerSecrets;
use crate::{redaction, settings, terminal};

/// Serves until nobody needs it.
pub(crate) fn main(state: &Path, node: &str) -> ExitCode {
    match start(state, node) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            terminal::write_stderr(&failure.render());
            ExitCode::FAILURE
        }
    }
}

fn start(state: &Path, node: &str) -> Result<(), Failure> {
    let caller = Caller::of_this_process()?;
    crate::install_tracing(&caller);
    let node: NodeId =
        node.parse().map_err(|error| Failure::internal("the name of the node cannot be read", &error))?;
    let home =
        Home::open(state).map_err(|error| Failure::internal("the state folder cannot be used", &error))?;
    // One broker per node. The kernel drops the lock with the process, however that ends; until then the next
    // one waits here, and takes over at once.
    let _lock =
        lock(&home, &node).map_err(|error| Failure::internal("the broker's lock cannot be taken", &error))?;
    let setup =
        BrokerSetup { secrets: CallerSecrets::of(&caller)?, settings: settings::read_in(home.root())? };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::internal("the runtime could not be started", &error))?;
    runtime.block_on(serve(home, node, setup, &caller))
}

fn lock(home: &Home, node: &NodeId) -> std::io::Result<File> {
    let path = home.brokers().join(format!("{node}.lock"));
    let lock = File::options().create(true).truncate(false).write(true).open(path)?;
    flock(&lock, FlockOperation::LockExclusive)?;
    Ok(lock)
}

async fn serve(home: Home, node: NodeId, setup: BrokerSetup, caller: &Caller) -> Result<(), Failure> {
    let store = open_store(&home, caller).await?;
    let ledger = StoreLedger::new(store.clone(), home.clone(), redaction::know(caller));
    let service = BrokerService {
        broker: setup.start(&ledger),
        own: NodeId::new(now_ms(), random_bits()?),
        node,
        home,
        store,
    };
    let (stop, stopped) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())
        .map_err(|error| Failure::internal("signals cannot be received", &error))?;
    tokio::spawn(async move {
        terminate.recv().await;
        stop.send_replace(true);
        // The channel stays open: a sender that is gone would look like a wait that failed.
        std::future::pending::<()>().await;
    });
    service.run(stopped).await.map_err(|error| Failure::internal("the broker cannot go on", &error))
}
