//! The service, from its start to its stop.

use std::future::Future;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::app::App;
use crate::options::{KeyRule, Options, StartError};
use crate::{connection, router, status};

/// More descriptors than connections, files and the database together need.
const OPEN_FILES: u64 = 65_536;

/// The service over HTTP.
pub struct Service {
    app: App,
}

impl Service {
    /// A service that does nothing before [`Service::run`]. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`StartError`] if it would be open to those that it must not be open to.
    pub fn new(options: Options) -> Result<Self, StartError> {
        options.check()?;
        if options.keys == KeyRule::NotOnLoopback {
            tracing::warn!(
                "callers of this machine need no key: no proxy may stand in front of the service, since whoever reaches the \
                 proxy would be let in as such a caller"
            );
        }
        Ok(Self { app: App::new(options) })
    }

    /// Serves until `shutdown` ends, and then lets calls that are under way end within their time.
    pub async fn run(self, listener: TcpListener, shutdown: impl Future<Output = ()>) {
        allow_open_files();
        status::look(&self.app, true).await;
        let (stop, stopping) = watch::channel(false);
        let watching = tokio::spawn(status::watch(self.app.clone(), stopping.clone()));
        let bounds = self.app.bounds().clone();
        let serving = connection::serve(listener, router::router(self.app), &bounds, stopping);
        let mut serving = std::pin::pin!(serving);
        tokio::select! {
            () = serving.as_mut() => return,
            () = shutdown => {}
        }
        // Whoever has stopped listening needs no word.
        let _ = stop.send(true);
        serving.await;
        let _ = watching.await;
    }
}

/// A thousand readers are a thousand descriptors, which is all that many systems give a process at first.
fn allow_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    if current.is_some_and(|current| current < wanted) {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
        if let Err(error) = raised {
            tracing::warn!(%error, "the number of open files could not be raised");
        }
    }
}
