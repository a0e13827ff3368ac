//! Asking nodes: the record carries the question to whoever can answer it, and the answer back.
//!
//! Whoever asks waits with a deadline. A node that dies with a question is not waited for any longer than that.

use std::time::Duration;

use cofferdam_core::{
    Action, Actor, Agent, AgentQuestion, Effective, Mode, NodeId, NodeRequestId, NodeTask, Subject,
    SystemConfig, agent_names, check_policy, choose_agent,
};
use cofferdam_store::{NewNodeRequest, NodeHealth, NodeRecord, RequestState};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use crate::Operations;
use crate::authorise::mandate;
use crate::clock::now_ms;
use crate::error::Error;
use crate::random::random_bits;

/// How long a node has to answer: longer than the longest check and its end.
const ANSWERS_WITHIN: Duration = Duration::from_secs(40);
/// How often the record is looked at for an answer.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A node that has not told of itself for so long is not asked.
const SILENT_MS: u64 = 20_000;

/// What a node answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The node.
    pub node: NodeId,
    /// What people call it.
    pub name: String,
    /// Its machine.
    pub host: String,
    /// What it said; `None` if it did not answer in time.
    pub answer: Option<Value>,
}

impl Operations {
    /// Has a node try whether an agent's CLI is logged in, on the host or in a sandbox; without either, where runs of the
    /// service are. Equal questions within a minute have one answer.
    ///
    /// # Errors
    /// [`Error`]; [`Error::NodeUnavailable`] if no node answers.
    pub async fn check_auth(
        &self,
        actor: &Actor,
        agent: Agent,
        place: Option<CheckPlace>,
    ) -> Result<Value, Error> {
        const ACTION: Action = Action::CheckAuth;
        self.authorise(actor, ACTION, agent.as_str(), Subject::Nothing).await?;
        let now = self.now().await?;
        let mode = match (place, now.settings.settings.sandbox.mode) {
            (None, in_force) => in_force,
            (Some(CheckPlace::Host), _) => Mode::Host,
            (Some(CheckPlace::Sandbox), in_force) if in_force.is_sandboxed() => in_force,
            (Some(CheckPlace::Sandbox), _) => self.mode_of_sandbox().await?,
        };
        let policy = check_policy(agent.as_str(), mode, &now.settings)?;
        let named = now.settings.settings.agents.get(agent.as_str());
        let task = NodeTask::AuthCheck {
            name: agent.as_str().to_owned(),
            agent: named.map_or(agent, |named| named.provider),
            model: named.and_then(|named| named.model.clone()),
            policy: Box::new(policy),
        };
        let nodes = now.living_nodes().await?;
        if nodes.is_empty() {
            return Err(Error::NodeUnavailable("no node is running".to_owned()));
        }
        // Whoever has the mode, if not all have it or none has.
        let has = |node: &&NodeRecord| {
            node.report.modes.iter().any(|report| report.mode == mode && report.missing.is_none())
        };
        let able = nodes.iter().filter(has).count();
        let node = (able > 0 && able < nodes.len()).then(|| nodes.iter().find(has)).flatten();
        let request = NewNodeRequest {
            share: Some(digest(&task, &self.recorded_config().await?)),
            ..new_request(node.map(|node| node.id.clone()), task)
        };
        let about = json!({ "mode": mode });
        let costs = mandate(actor, ACTION, agent.as_str(), about);
        let asked = self.store.ask_node(&request, Some(&costs), now_ms()).await?;
        self.store.wake();
        self.answer(&asked.id)
            .await?
            .ok_or_else(|| Error::NodeUnavailable("no node has answered in time".to_owned()))
    }

    /// Has every node look at what its machine can enforce.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn doctor(&self, actor: &Actor, mode: Option<Mode>) -> Result<Vec<Answered>, Error> {
        self.authorise(actor, Action::RunDoctor, "", Subject::Nothing).await?;
        let in_force = self.now().await?.settings.settings.sandbox.mode;
        let mode = match mode.unwrap_or(in_force) {
            // There are no walls to look at.
            Mode::Host => Mode::Native,
            mode => mode,
        };
        self.ask_all(&NodeTask::Doctor { mode }).await
    }

    /// Has every node look which CLIs and which keys or logins it has for the agents that can be named.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn look_at_agents(&self, actor: &Actor) -> Result<Vec<Answered>, Error> {
        self.authorise(actor, Action::LookAtAgents, "", Subject::Nothing).await?;
        let settings = self.now().await?.settings;
        let agents =
            agent_names(&settings).into_iter().filter_map(|name| question(name, &settings)).collect();
        self.ask_all(&NodeTask::Agents { agents }).await
    }

    /// Asks every living node, all at once.
    pub(crate) async fn ask_all(&self, task: &NodeTask) -> Result<Vec<Answered>, Error> {
        let mut asked = Vec::new();
        for node in self.living_nodes().await? {
            let request = new_request(Some(node.id.clone()), task.clone());
            asked.push((self.store.ask_node(&request, None, now_ms()).await?.id, node));
        }
        self.store.wake();
        let mut answers = Vec::new();
        let deadline = Instant::now() + ANSWERS_WITHIN;
        for (id, NodeRecord { id: node, report, .. }) in asked {
            let answer = self.answer_until(&id, deadline).await?;
            answers.push(Answered { node, name: report.name, host: report.host, answer });
        }
        Ok(answers)
    }

    async fn living_nodes(&self) -> Result<Vec<NodeRecord>, Error> {
        let now = now_ms();
        let is_living = |node: &NodeRecord| {
            now.saturating_sub(node.seen_at_ms) < SILENT_MS && node.report.health != NodeHealth::Draining
        };
        Ok(self.store.nodes().await?.into_iter().filter(is_living).collect())
    }

    async fn answer(&self, id: &NodeRequestId) -> Result<Option<Value>, Error> {
        self.answer_until(id, Instant::now() + ANSWERS_WITHIN).await
    }

    /// `None` if it does not come in time.
    async fn answer_until(&self, id: &NodeRequestId, deadline: Instant) -> Result<Option<Value>, Error> {
        loop {
            match self.store.node_answer(id).await? {
                RequestState::Answered(answer) => return Ok(Some(answer)),
                RequestState::Gone => return Ok(None),
                RequestState::Open if Instant::now() >= deadline => {
                    self.store.forget_node_request(id).await?;
                    return Ok(None);
                }
                RequestState::Open => sleep(LOOK_EVERY).await,
            }
        }
    }
}

/// Where an agent is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckPlace {
    /// On the host.
    Host,
    /// In a sandbox.
    Sandbox,
}

/// `None` for an agent that cannot be chosen, such as one whose policy the settings do not have.
fn question(name: &str, settings: &Effective) -> Option<AgentQuestion> {
    let choice = choose_agent(name, settings).ok()?;
    Some(AgentQuestion {
        name: name.to_owned(),
        agent: choice.provider?,
        model: choice.agent.and_then(|agent| agent.model.clone()),
        mode: choice.mode.value,
    })
}

/// What is asked, in few enough bytes for an index of PostgreSQL: a policy may be longer than a page. After a change of what is on
/// record, such as the folder of a login, it is another question.
fn digest(task: &NodeTask, config: &SystemConfig) -> String {
    let text = serde_json::to_string(task).unwrap_or_default();
    Sha256::digest(format!("{text}{:?}", config.iter().collect::<Vec<_>>()))
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn new_request(node: Option<NodeId>, task: NodeTask) -> NewNodeRequest {
    let now = now_ms();
    let within = u64::try_from(ANSWERS_WITHIN.as_millis()).unwrap_or(u64::MAX);
    NewNodeRequest {
        id: NodeRequestId::new(now, random_bits()),
        node,
        task,
        share: None,
        deadline_ms: now.saturating_add(within),
    }
}
