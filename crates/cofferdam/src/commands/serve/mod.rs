//! `cofferdam serve`: the service in the foreground.

mod api;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) use api::{first_words, has_key, is_open_on_loopback};
use clap::Args;
use cofferdam_core::{NodeId, ProcessName};
use cofferdam_operations::Operations;
use cofferdam_runner::{Home, Stop, is_alive};
use tokio::sync::watch;

use super::work::{NodeFlags, say_what_is_kept};
use crate::caller::{Caller, now_ms};
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::record_place::open_store;
use crate::service::{
    Instance, LogOf, Served, Supervisor, SupervisorOptions, keep_small, log_path, until_asked_to_stop,
};
use crate::{settings, terminal};

/// How long a dispatcher may take to be there.
const STARTS_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Take tasks over HTTP and run them, until it is told to stop
///
/// It keeps processes of its own: the dispatcher, which runs tasks, the broker, which is their way out, and what an operator
/// has started besides (`cofferdam ps`). The first SIGTERM or Ctrl-C stops gracefully; the second one at once. What runs in a sandbox goes on either way, and the next
/// start takes it up again.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    /// What it is told about its node
    #[command(flatten)]
    pub(crate) node: NodeFlags,

    /// Where the API listens, over `service.listen`
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,

    /// Run no tasks here: others do, with `cofferdam work`
    #[arg(long)]
    pub(crate) no_work: bool,

    /// Leave the terminal that it was started from
    #[arg(long, hide = true)]
    background: bool,
}

impl ServeArgs {
    /// The same as arguments of a service in the background.
    pub(crate) fn background_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["serve".into(), "--background".into()];
        arguments.extend(self.node.arguments());
        if let Some(listen) = self.listen {
            arguments.extend(["--listen".into(), listen.to_string().into()]);
        }
        if self.no_work {
            arguments.push("--no-work".into());
        }
        arguments
    }
}

/// Serves until it is told to stop.
pub(crate) async fn run(args: &ServeArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let failed = |attempted: &'static str| move |error: std::io::Error| Failure::internal(attempted, &error);
    if args.background {
        // Whatever ends the session of the terminal is not for us.
        rustix::process::setsid()
            .map_err(|errno| Failure::internal("the terminal cannot be left", &errno))?;
    }
    let mut effective = settings::read_for_service(caller)?;
    let service = &mut effective.settings.service;
    service.listen = args.listen.unwrap_or(service.listen);
    let home = caller.open_state()?;
    let name = &args.node.name;
    let stop = until_asked_to_stop().map_err(failed("signals cannot be received"))?;
    let begun =
        Instance::begin(&home, name, now_ms()).map_err(failed("the service's lock cannot be taken"))?;
    let Some(instance) = begun else {
        return Err(Failure::new(ExitCode::Refused, format!("the service `{name}` runs already")).hint(
            "`cofferdam status` tells more; another one on the same state folder needs another --name",
        ));
    };
    keep_small(log_path(&home, LogOf::Serve, name));
    // Before any child: what it brings up to date is so for all.
    let store = open_store(&home, caller).await?;
    let (end_api, api_ends) = watch::channel(false);
    let settings = effective.settings.clone();
    let operations = Operations::new(store.clone(), Arc::new(effective.clone()), Arc::new(|_| false));
    let api = api::start(&home, name, caller, effective, store.clone(), api_ends).await?;
    let instance = Arc::new(Mutex::new(instance));
    let say = |change: &dyn Fn(&mut Served)| lock(&instance).say(change);
    let supervisor = Supervisor::new(SupervisorOptions {
        home: home.clone(),
        store,
        operations,
        listen: api.listens,
        works: !args.no_work,
        drain: args.node.drain.unwrap_or(settings.service.drain_seconds),
        node: args.node.clone(),
        instance: Arc::clone(&instance),
    })
    .await?;
    let expects_dispatcher = supervisor.is_wanted(ProcessName::Dispatcher);
    let supervising = tokio::spawn(supervisor.run(stop.subscribe()));
    if expects_dispatcher {
        let node = home.node_id(name, now_ms()).map_err(failed("the node's id cannot be kept"))?;
        until_node_is_there(&home, &node, &mut stop.subscribe()).await;
    }
    say(&|served| {
        served.listen = Some(api.listens);
        served.is_ready = true;
    });
    tracing::info!(node = %name, listen = %api.listens, "ready");
    if expects_dispatcher {
        say_what_is_kept(&settings.retention);
    }
    if api.has_made_key {
        terminal::write_stderr(&first_words(&home, api.listens));
    }
    let mut asked = stop.subscribe();
    // The channel stays open as long as the signals are watched.
    let _ = asked.wait_for(|asked| *asked != Stop::No).await;
    tracing::info!("stopping");
    say(&|served| served.is_ready = false);
    let ended = supervising.await;
    ended.map_err(|error| Failure::internal("the supervisor's task panicked", &error))?;
    end_api.send_replace(true);
    // It gives the calls that are under way a moment.
    let _ = api.serving.await;
    tracing::info!("stopped");
    Ok(ExitCode::Succeeded)
}

/// Waits until the dispatcher is there, or for a moment: why it is not is in its log.
async fn until_node_is_there(home: &Home, node: &NodeId, asked: &mut watch::Receiver<Stop>) {
    let there = async {
        while !is_alive(home, node) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::select! {
        waited = tokio::time::timeout(STARTS_WITHIN, there) => if waited.is_err() {
            tracing::warn!("the dispatcher does not come up; `cofferdam logs --role dispatcher` tells why");
        },
        _ = asked.wait_for(|asked| *asked != Stop::No) => {}
    }
}

/// Nobody panics while saying something; if somebody did, what is said next is whole all the same.
fn lock(instance: &Mutex<Instance>) -> MutexGuard<'_, Instance> {
    instance.lock().unwrap_or_else(PoisonError::into_inner)
}
