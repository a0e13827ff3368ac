//! A container for one question: it is made behind the same walls as an agent's, says something, and is removed.

use std::collections::HashMap;
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::query_parameters::{
    AttachContainerOptions, CreateContainerOptions, ListContainersOptions, WaitContainerOptions,
};
use cofferdam_core::{Network, Policy, inside};
use futures_util::StreamExt;

use super::DockerBackend;
use super::body::{Parts, body};
use super::engine::{message_of, remove_container};
use super::image::Image;
use super::plan::label;
use crate::asker::Asker;
use crate::clock::now_ms;
use crate::container::{Bound, Memory};
use crate::local::Identity;
use crate::random::random;

/// No answer is longer.
const LONGEST_OUTPUT: usize = 64 << 10;
/// One that is older was left by a process that died, whoever that was.
const OLD: Duration = Duration::from_secs(600);

/// What is asked.
pub(super) struct Question<'a> {
    /// What the container is for, as a part of its name.
    pub(super) name: &'a str,
    pub(super) policy: &'a Policy,
    pub(super) image: &'a Image,
    pub(super) command: Vec<String>,
    pub(super) bounds: Vec<Bound>,
    pub(super) memories: Vec<Memory>,
    /// A container that takes longer is stuck.
    pub(super) deadline: Duration,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: i64,
    pub(super) stdout: String,
}

/// Asks, with no network. An error says why the container did not get as far as to an end of its own.
pub(super) async fn ask(
    backend: &DockerBackend,
    docker: &Docker,
    question: Question<'_>,
) -> Result<Answer, String> {
    let state = backend.state_id().map_err(|error| error.to_string())?;
    remove_left(docker, &state).await;
    let asker = Asker::own().map_err(|error| error.to_string())?;
    let random = u64::from_ne_bytes(random().map_err(|error| error.to_string())?);
    let name = format!("cofferdam-{}-{random:016x}", question.name);
    let policy = Policy { network: Network::None, ..question.policy.clone() };
    let labels =
        [(label::STATE, state), (label::TRIAL, question.name.to_owned()), (label::ASKER, asker.to_string())];
    let parts = Parts {
        policy: &policy,
        image: question.image,
        who: Identity { uid: inside::UID, gid: inside::UID, ids: None },
        labels: labels.map(|(key, value)| (key.to_owned(), value)).into(),
        command: question.command,
        bounds: question.bounds,
        memories: question.memories,
        volumes: Vec::new(),
        stdin: false,
    };
    let options = CreateContainerOptions { name: Some(name.clone()), ..CreateContainerOptions::default() };
    docker.create_container(Some(options), body(parts)).await.map_err(|error| message_of(&error))?;
    let late = || format!("it took longer than {} s", question.deadline.as_secs());
    let ended = tokio::time::timeout(question.deadline, run(docker, &name)).await;
    let removed = remove_container(docker, &name).await.map_err(|error| message_of(&error));
    let answer = ended.unwrap_or_else(|_| Err(late()))?;
    removed.map(|()| answer)
}

async fn run(docker: &Docker, name: &str) -> Result<Answer, String> {
    let said = |error: bollard::errors::Error| message_of(&error);
    // Attached before it starts, so that nothing of what it says is missed.
    let options = AttachContainerOptions { stdout: true, stream: true, ..AttachContainerOptions::default() };
    let mut attached = docker.attach_container(name, Some(options)).await.map_err(said)?;
    docker.start_container(name, None).await.map_err(said)?;
    let mut stdout = Vec::new();
    while let Some(Ok(output)) = attached.output.next().await {
        if let LogOutput::StdOut { message } = output {
            let room = LONGEST_OUTPUT - stdout.len();
            stdout.extend_from_slice(&message[..message.len().min(room)]);
        }
    }
    let options = WaitContainerOptions { condition: "not-running".to_owned() };
    let mut waiting = Box::pin(docker.wait_container(name, Some(options)));
    let code = match waiting.next().await {
        Some(Ok(ended)) => ended.status_code,
        Some(Err(bollard::errors::Error::DockerContainerWaitError { code, .. })) => code,
        Some(Err(error)) => return Err(message_of(&error)),
        None => return Err("the engine did not say how it ended".to_owned()),
    };
    Ok(Answer { code, stdout: String::from_utf8_lossy(&stdout).into_owned() })
}

/// Removes what a process of this state folder left when it died in the middle.
pub(super) async fn remove_left(docker: &Docker, state: &str) {
    let labels = vec![format!("{}={state}", label::STATE), label::TRIAL.to_owned()];
    let filters = HashMap::from([("label".to_owned(), labels)]);
    let options =
        ListContainersOptions { all: true, filters: Some(filters), ..ListContainersOptions::default() };
    for one in docker.list_containers(Some(options)).await.unwrap_or_default() {
        let asker = one.labels.as_ref().and_then(|labels| labels.get(label::ASKER)?.parse::<Asker>().ok());
        let is_left = asker.and_then(Asker::has_ended).unwrap_or_else(|| is_old(one.created));
        if let (true, Some(id)) = (is_left, one.id) {
            let _ = remove_container(docker, &id).await;
        }
    }
}

fn is_old(created: Option<i64>) -> bool {
    let created = Duration::from_secs(created.and_then(|at| at.try_into().ok()).unwrap_or_default());
    Duration::from_millis(now_ms()).saturating_sub(created) > OLD
}
