//! Changing what may change while the service runs.

use cofferdam_core::{
    Action, Actor, ConfigReport, ConfigUpdates, Effective, InputError, Mode, ModeTrial, NodeTask, Refusal,
    Subject, SystemConfig, agent_policy,
};
use serde_json::json;

use crate::Operations;
use crate::asking::Answered;
use crate::authorise::mandate;
use crate::error::Error;

/// What is to be changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigChange {
    /// Keys with their values; without one a key is unset.
    pub updates: ConfigUpdates,
    /// Change it although no node can use it.
    pub force: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigChanged {
    /// Whether anything was different before.
    pub changed: bool,
    /// What is in force now.
    pub report: ConfigReport,
}

/// What a node found when it tried what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeTrial {
    /// What people call the node.
    pub node: String,
    /// What it found; `None` if it did not answer in time.
    pub trial: Option<ModeTrial>,
}

/// What a caller without a key may change: which agent works. With the others it would choose the image, the bounds and the account
/// that everybody's runs have.
const WITHOUT_KEY: [&str; 4] =
    ["LLM_EXECUTOR", "WORKER_LLM_EXECUTOR", "TESTER_LLM_EXECUTOR", "DOCSER_LLM_EXECUTOR"];

impl Operations {
    /// Changes all of it or nothing. What runs are made with is tried first, on every node.
    ///
    /// # Errors
    /// [`Error`]; [`Error::ModeUnusable`] if no node can use it.
    pub async fn change_config(&self, actor: &Actor, change: &ConfigChange) -> Result<ConfigChanged, Error> {
        const ACTION: Action = Action::ChangeConfig;
        const SUBJECT: &str = "system_config";
        self.authorise(actor, ACTION, SUBJECT, Subject::Nothing).await?;
        if *actor == Actor::Loopback && change.updates.keys().any(|key| !WITHOUT_KEY.contains(&key.as_str()))
        {
            let refusal = Refusal::NotWithoutKey { action: ACTION };
            self.unless_refused(actor, ACTION, SUBJECT, Err(refusal)).await?;
        }
        let before = self.recorded_config().await?;
        let after = before.changed(&change.updates)?;
        self.refuse_host(&before, &after)?;
        if !change.force {
            self.try_on_nodes(&before, &after).await?;
        }
        let normal: ConfigUpdates =
            change.updates.keys().map(|key| (key.clone(), after.get(key).map(str::to_owned))).collect();
        let about = json!({ "updates": normal, "force": change.force });
        let changed = self.store.change_config(&mandate(actor, ACTION, SUBJECT, about), &normal).await?;
        // Nodes look at it by and by, should this not reach them.
        self.store.wake();
        Ok(ConfigChanged { changed, report: self.recorded_config().await?.report(&self.settings) })
    }

    /// While callers need no key, nobody switches the walls off: whoever is on this machine could.
    fn refuse_host(&self, before: &SystemConfig, after: &SystemConfig) -> Result<(), Error> {
        let mode = |config: &SystemConfig| config.over(&self.settings).settings.sandbox.mode;
        match self.is_open_on_loopback && mode(after) == Mode::Host && mode(before) != Mode::Host {
            true => Err(InputError::invalid(
                "updates",
                "EXECUTION_ENVIRONMENT: `host` is refused while COFFERDAM_ALLOW_INSECURE_SYSTEM_CONTROL is set",
                "start the service without that variable, and use a key",
            )
            .into()),
            false => Ok(()),
        }
    }

    async fn try_on_nodes(&self, before: &SystemConfig, after: &SystemConfig) -> Result<(), Error> {
        let (before, after) = (before.over(&self.settings), after.over(&self.settings));
        if made_with(&before) == made_with(&after) {
            return Ok(());
        }
        let mode = after.settings.sandbox.mode;
        let agent = after.settings.service.default_agent;
        let policy = Box::new(agent_policy(agent.as_str(), mode, &after)?);
        let answers = self.ask_all(&NodeTask::TryMode { policy }).await?;
        let trials: Vec<NodeTrial> = answers.into_iter().map(trial).collect();
        let is_usable = |trial: &NodeTrial| trial.trial.as_ref().is_some_and(|trial| trial.usable);
        match trials.iter().any(is_usable) {
            true => Ok(()),
            false => Err(Error::ModeUnusable { mode, trials }),
        }
    }
}

/// What a change has to be tried for: the mode, and the image where there is one.
fn made_with(settings: &Effective) -> (Mode, Option<String>) {
    let sandbox = &settings.settings.sandbox;
    let container = sandbox.container_in(sandbox.mode);
    (sandbox.mode, container.map(|container| container.image.to_string()))
}

fn trial(answered: Answered) -> NodeTrial {
    let trial = answered.answer.and_then(|answer| serde_json::from_value(answer).ok());
    NodeTrial { node: answered.name, trial }
}
