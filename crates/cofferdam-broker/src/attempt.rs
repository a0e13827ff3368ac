//! One attempt that is being served.

use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_core::{AllowRule, gateway};
use cofferdam_net::Dialer;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::accept::{Behind, accept};
use crate::broker::OpenError;
use crate::git;
use crate::grant::Grant;
use crate::ledger::Ledger;
use crate::memory::Memory;
use crate::model;
use crate::options::Options;
use crate::places::Places;
use crate::recorder::Recorder;
use crate::rules::Rules;
use crate::served::Served;
use crate::socket::{Socket, SocketPath};

/// An attempt's sockets and tasks. They end when it is dropped.
pub(crate) struct Attempt {
    serving: Arc<Served>,
    sockets: Vec<SocketPath>,
    /// All of them are free while there is no connection.
    places: Places,
    listeners: Mutex<JoinSet<()>>,
    recording: Mutex<Option<JoinHandle<()>>>,
}

impl Attempt {
    /// Serves an attempt: when this returns, its sockets take connections.
    pub(crate) async fn open(
        grant: Grant,
        options: Arc<Options>,
        ledger: Arc<dyn Ledger>,
        dialer: Dialer,
        memory: Arc<Memory>,
    ) -> Result<Self, OpenError> {
        let bounds = options.bounds;
        let git = match &grant.git {
            Some(git) => Some(git::Route::new(git, Arc::clone(&options), dialer.clone())?),
            None => None,
        };
        let model = match &grant.model {
            Some(model) => Some(
                model::Routes::open(
                    model,
                    grant.attempt.clone(),
                    Arc::clone(&options),
                    Arc::clone(&ledger),
                    dialer.clone(),
                    memory.share(&bounds),
                )
                .await?,
            ),
            None => None,
        };
        let serving = Arc::new(Served {
            attempt: grant.attempt.clone(),
            bounds,
            dialer,
            proxies: grant.proxy.is_some(),
            rules: Rules::new(grant.proxy.clone().unwrap_or_default()),
            model,
            git,
            recorder: Recorder::new(grant.attempt.clone(), ledger),
            retiring: watch::Sender::new(false),
        });
        let mut listeners = JoinSet::new();
        let mut sockets = Vec::new();
        let places = memory.places(&bounds);
        for (name, behind) in names(&grant) {
            let socket = Socket::listen(&grant.folder, &name)
                .map_err(|source| OpenError::Listen { path: grant.folder.join(&name), source })?;
            sockets.push(socket.path);
            listeners.spawn(accept(Arc::clone(&serving), socket.listener, behind, places.clone()));
        }
        let recording = tokio::spawn({
            let serving = Arc::clone(&serving);
            async move { serving.recorder.run().await }
        });
        Ok(Self {
            serving,
            sockets,
            places,
            listeners: Mutex::new(listeners),
            recording: Mutex::new(Some(recording)),
        })
    }

    /// Replaces what is allowed beyond the grant.
    pub(crate) fn allow(&self, additions: Vec<AllowRule>) {
        self.serving.rules.set_additions(additions);
    }

    /// Stops listening. What is in flight goes on.
    pub(crate) fn retire(&self) {
        for socket in &self.sockets {
            socket.remove();
        }
        self.serving.retiring.send_replace(true);
    }

    /// Whether there is no connection.
    pub(crate) fn is_idle(&self) -> bool {
        self.places.are_free()
    }

    /// Ends its connections, then settles what they left.
    pub(crate) async fn close(&self) {
        let mut listeners =
            std::mem::take(&mut *self.listeners.lock().unwrap_or_else(PoisonError::into_inner));
        listeners.shutdown().await;
        for socket in &self.sockets {
            socket.remove();
        }
        if let Some(model) = &self.serving.model {
            model.settle().await;
        }
        if let Some(recording) = self.take_recording() {
            self.serving.recorder.finish(recording).await;
        }
    }

    fn take_recording(&self) -> Option<JoinHandle<()>> {
        self.recording.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(recording) = self.take_recording() {
            recording.abort();
        }
    }
}

fn names(grant: &Grant) -> Vec<(String, Behind)> {
    let gateway = (gateway::SOCKET.to_owned(), Behind::Gateway);
    let services = grant
        .forwards
        .iter()
        .map(|forward| (gateway::forward_socket(forward.port), Behind::Service(forward.target.clone())));
    std::iter::once(gateway).chain(services).collect()
}
