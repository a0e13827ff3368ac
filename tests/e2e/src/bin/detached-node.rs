//! A node as a service runs it: executes detached runs until it is told to stop, or killed.
//!
//! `detached-node STATE NODE BINARY CAPACITY`

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use cofferdam_core::Redactor;
use cofferdam_runner::{Dispatcher, Home, Node, NodeOptions};
use cofferdam_sandbox::{Attachment, Backend, host, native};
use cofferdam_store::Store;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &'static str| arguments.next().context(what);
    let home = Home::open(&PathBuf::from(next("a state folder")?))?;
    let id = next("a node")?.parse().context("a node's id")?;
    let binary = PathBuf::from(next("a binary")?);
    let capacity = next("a capacity")?.parse()?;
    let node = Node::register(NodeOptions {
        id,
        store: Store::open_sqlite(&home.database()).await?,
        backends: backends(&home, &binary),
        home,
        attachment: Attachment::Detached,
        env: Arc::new(|name| std::env::var(name).ok()),
        redactor: Redactor::default(),
        without: Vec::new(),
    })?;
    let (stop, stopped) = watch::channel(false);
    let mut terminate = signal(SignalKind::terminate())?;
    println!("ready");
    tokio::spawn(async move {
        terminate.recv().await;
        stop.send_replace(true);
        // The channel stays open: a sender that is gone would look like a wait that failed.
        std::future::pending::<()>().await;
    });
    Dispatcher::new(Arc::new(node), capacity).run(stopped).await?;
    Ok(())
}

fn backends(home: &Home, binary: &std::path::Path) -> Vec<Arc<dyn Backend>> {
    let path = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect());
    let caller = native::Caller {
        home: std::env::var_os("HOME").map(PathBuf::from),
        path: path.unwrap_or_default(),
        locale: Default::default(),
    };
    let (state, binary) = (home.root().to_owned(), binary.to_owned());
    let native = native::Options {
        state: state.clone(),
        binary: binary.clone(),
        caller: caller.clone(),
        without: Vec::new(),
    };
    vec![
        Arc::new(native::NativeBackend::new(native)),
        Arc::new(host::HostBackend::new(host::Options { state, binary, caller })),
    ]
}
