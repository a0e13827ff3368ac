//! What a node finds out for somebody who asks through the record: with the code of the commands that ask on this machine.

use std::sync::Arc;

use cofferdam_core::{ModeTrial, NodeTask, Policy, SandboxSettings, Settings};
use cofferdam_runner::auth::{AuthCache, AuthCheck, AuthStatus, AuthWord, depends_on};
use cofferdam_runner::{AnswerTask, Home, try_policy};
use cofferdam_store::Store;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::commands::{agents, sandbox::doctor};
use crate::failure::Failure;
use crate::followed_config::FollowedConfig;
use crate::node::{self, BrokerSetup};
use crate::secrets::CallerSecrets;

/// What the answers of a node need.
#[derive(Clone)]
pub(crate) struct Answering {
    pub(crate) home: Home,
    pub(crate) store: Store,
    pub(crate) caller: Caller,
    pub(crate) settings: Settings,
    pub(crate) config: FollowedConfig,
}

impl Answering {
    /// As the dispatcher takes it.
    pub(crate) fn into_task(self) -> AnswerTask {
        // Whatever repository the service happens to be started in has no say.
        let own = Self { caller: Caller { current_folder: "/".into(), ..self.caller.clone() }, ..self };
        let own = Arc::new(own);
        Arc::new(move |task| {
            let own = Arc::clone(&own);
            Box::pin(async move { own.answer(task).await })
        })
    }

    async fn answer(&self, task: NodeTask) -> Value {
        // Whoever changed something and asks at once is answered by what holds now.
        self.config.read(&self.store).await;
        match task {
            NodeTask::AuthCheck { name, agent, model, policy } => {
                let check = AuthCheck { name, agent, model, policy: *policy, exclude: None, timeout: None };
                let status = self.check(&check).await.unwrap_or_else(|failure| {
                    check.refused(AuthWord::Unknown, &format!("it could not be tried: {}", failure.message()))
                });
                json!(status)
            }
            NodeTask::Agents { agents } => match self.secrets() {
                Ok(secrets) => {
                    let state = |asked| agents::state(asked, &self.caller, &secrets);
                    agents.into_iter().map(state).map(|state| json!(state)).collect()
                }
                Err(failure) => refused(&failure),
            },
            NodeTask::Doctor { mode } => match doctor::look(mode, &self.caller).await {
                Ok(report) => report.to_json(),
                Err(failure) => json!({ "mode": mode, "findings": [refused(&failure)] }),
            },
            NodeTask::TryMode { policy } => {
                let tried = self.try_mode(&policy).await;
                json!(tried.unwrap_or_else(|failure| {
                    ModeTrial { usable: false, findings: vec![refused(&failure)] }
                }))
            }
        }
    }

    async fn check(&self, check: &AuthCheck) -> Result<AuthStatus, Failure> {
        let (secrets, cache) = (self.secrets()?, AuthCache::of(&self.home));
        let parts = depends_on(check, &self.caller.env, &secrets.places());
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        if let Some(known) = cache.recall(&parts) {
            return Ok(known);
        }
        let status = check.run(&self.node(secrets).await?).await;
        if let Err(error) = cache.keep(&parts, &status) {
            tracing::warn!(%error, "the answer of a check could not be kept");
        }
        Ok(status)
    }

    async fn try_mode(&self, policy: &Policy) -> Result<ModeTrial, Failure> {
        Ok(try_policy(&self.node(self.secrets()?).await?, policy).await)
    }

    /// A node of its own for as long as it takes, as every command has one: what it makes is its own, and not a run of the
    /// dispatcher's.
    async fn node(&self, secrets: CallerSecrets) -> Result<cofferdam_runner::Node, Failure> {
        let mut settings = self.settings.clone();
        // Somebody waits for the answer, and a check that waits for a slot would say that the agent is slow.
        settings.sandbox.max_concurrency = SandboxSettings::default().max_concurrency;
        node::register(&self.home, &self.caller, BrokerSetup { secrets, settings }).await
    }

    fn secrets(&self) -> Result<CallerSecrets, Failure> {
        Ok(CallerSecrets::of(&self.caller)?.following(&self.caller, self.config.clone()))
    }
}

fn refused(failure: &Failure) -> Value {
    json!({ "name": "record", "status": "missing", "detail": failure.message(), "remedy": failure.remedy() })
}
