//! Tries in a container of the engine whether it reaches a socket of this machine.

use std::collections::HashMap;

use bollard::Docker;
use bollard::models::SystemInfo;
use bollard::query_parameters::{CreateContainerOptions, WaitContainerOptions};
use cofferdam_core::{Network, Policy, inside};
use futures_util::StreamExt;

use super::DockerBackend;
use super::body::{Parts, body};
use super::engine::message_of;
use super::image::Image;
use super::plan::label;
use super::sandbox::remove_container;
use crate::backend::Refusal;
use crate::container::{Bound, Known, SOCKET_DEADLINE, SocketTrial, unreachable_socket};

/// Tries it, unless it worked before with the same engine, runtime and binary.
pub(super) async fn try_socket(
    backend: &DockerBackend,
    docker: &Docker,
    info: &SystemInfo,
    policy: &Policy,
    image: &Image,
) -> Result<(), Refusal> {
    let known = known(backend, info, policy);
    if known.exists() {
        return Ok(());
    }
    let tried = tokio::time::timeout(SOCKET_DEADLINE, trial(backend, docker, policy, image)).await;
    match tried.unwrap_or_else(|_| Err(format!("it took longer than {} s", SOCKET_DEADLINE.as_secs()))) {
        Ok(()) => {
            known.remember();
            Ok(())
        }
        Err(why) => Err(unreachable_socket("this engine", &why)),
    }
}

fn known(backend: &DockerBackend, info: &SystemInfo, policy: &Policy) -> Known {
    let runtime = policy.container.runtime.as_ref().map(|name| name.as_str());
    let parts = [
        info.id.as_deref(),
        info.server_version.as_deref(),
        info.kernel_version.as_deref(),
        runtime.or(info.default_runtime.as_deref()),
    ];
    Known::new(&backend.options.state, &parts.map(Option::unwrap_or_default))
}

async fn trial(
    backend: &DockerBackend,
    docker: &Docker,
    policy: &Policy,
    image: &Image,
) -> Result<(), String> {
    let trial = SocketTrial::new(&backend.options.state).map_err(|error| error.to_string())?;
    let name = trial.container();
    let policy = Policy { network: Network::None, ..policy.clone() };
    let mut bounds = vec![trial.bound()];
    bounds.extend(backend.mounted_binary(image).map(|binary| Bound::read_only(binary, inside::BINARY)));
    let mut command = backend.worker_command(image);
    command.truncate(1);
    command.extend(SocketTrial::arguments());
    let state = backend.state_id().map_err(|error| error.to_string())?;
    let parts = Parts {
        policy: &policy,
        image,
        who: SocketTrial::who(),
        labels: HashMap::from([(label::STATE.to_owned(), state)]),
        command,
        bounds,
        memories: Vec::new(),
        volumes: Vec::new(),
        stdin: false,
    };
    let options = CreateContainerOptions { name: Some(name.clone()), ..CreateContainerOptions::default() };
    docker.create_container(Some(options), body(parts)).await.map_err(|error| message_of(&error))?;
    let ended = tokio::select! {
        ended = run(docker, &name) => ended,
        error = trial.serve() => Err(error.to_string()),
    };
    let removed = remove_container(docker, &name).await.map_err(|error| message_of(&error));
    ended.and(removed)
}

async fn run(docker: &Docker, name: &str) -> Result<(), String> {
    let options = WaitContainerOptions { condition: "next-exit".to_owned() };
    let mut waiting = Box::pin(docker.wait_container(name, Some(options)));
    let start = docker.start_container(name, None);
    let (started, ended) = tokio::join!(start, waiting.next());
    started.map_err(|error| message_of(&error))?;
    match ended {
        Some(Ok(_)) => Ok(()),
        Some(Err(bollard::errors::Error::DockerContainerWaitError { .. })) => {
            Err("it sees the socket, and nobody behind it".to_owned())
        }
        Some(Err(error)) => Err(message_of(&error)),
        None => Err("the engine did not say how the trial ended".to_owned()),
    }
}
