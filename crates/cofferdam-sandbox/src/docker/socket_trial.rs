//! Tries in a container of the engine whether it reaches a socket of this machine.

use bollard::Docker;
use bollard::models::SystemInfo;
use cofferdam_core::{Policy, inside};

use super::DockerBackend;
use super::image::Image;
use super::throwaway::{Question, ask};
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
    match trial(backend, docker, policy, image).await {
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
    let mut bounds = vec![trial.bound()];
    bounds.extend(backend.mounted_binary(image).map(|binary| Bound::read_only(binary, inside::BINARY)));
    let mut command = backend.worker_command(image);
    command.truncate(1);
    command.extend(SocketTrial::arguments());
    let memories = Vec::new();
    let question =
        Question { name: "socket", policy, image, command, bounds, memories, deadline: SOCKET_DEADLINE };
    let answer = tokio::select! {
        answer = ask(backend, docker, question) => answer?,
        error = trial.serve() => return Err(error.to_string()),
    };
    match answer.code {
        0 => Ok(()),
        _ => Err("it sees the socket, and nobody behind it".to_owned()),
    }
}
