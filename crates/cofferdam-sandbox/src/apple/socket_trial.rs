//! Tries in a container of the runtime whether it reaches a socket of this machine. In a virtual machine, as Apple's
//! are, it does not.

use cofferdam_core::{Network, Policy, inside};

use super::AppleBackend;
use super::abilities::Abilities;
use super::arguments::{Parts, arguments};
use super::image::Image;
use crate::backend::Refusal;
use crate::container::{Bound, Known, SOCKET_DEADLINE, SocketTrial, unreachable_socket};
use crate::supervision::Runtime;

/// Tries it, unless it worked before with the same runtime and binary.
pub(super) async fn try_socket(
    backend: &AppleBackend,
    runtime: &Runtime,
    abilities: &Abilities,
    policy: &Policy,
    image: &Image,
) -> Result<(), Refusal> {
    let program = runtime.program.to_string_lossy();
    // The same client may lead to another service.
    let service = ["DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST", "CONTAINERD_ADDRESS"]
        .map(|name| runtime.env.get(name).map(String::as_str).unwrap_or_default())
        .join("-");
    let known = Known::new(&backend.options.state, &["apple", &program, &abilities.version, &service]);
    if known.exists() {
        return Ok(());
    }
    match trial(backend, runtime, abilities, policy, image).await {
        Ok(()) => {
            known.remember();
            Ok(())
        }
        Err(why) => Err(unreachable_socket(&format!("`{}`", runtime.name()), &why)),
    }
}

async fn trial(
    backend: &AppleBackend,
    runtime: &Runtime,
    abilities: &Abilities,
    policy: &Policy,
    image: &Image,
) -> Result<(), String> {
    let trial = SocketTrial::new(&backend.options.state).map_err(|error| error.to_string())?;
    let name = trial.container();
    let policy = Policy { network: Network::None, ..policy.clone() };
    let mut command = vec![inside::BINARY.to_owned()];
    command.extend(SocketTrial::arguments());
    let parts = Parts {
        policy: &policy,
        abilities,
        name: &name,
        who: SocketTrial::who(),
        root: rustix::process::geteuid().is_root(),
        labels: Vec::new(),
        bounds: vec![trial.bound(), Bound::read_only(&backend.options.binary, inside::BINARY)],
        memories: Vec::new(),
        volumes: &image.volumes,
        command,
    };
    let mut line = arguments(&parts).map_err(|refusal| refusal.problem)?;
    // Whoever asked may go away before we remove it.
    line.insert(1, "--rm".to_owned());
    let answer = tokio::select! {
        answer = runtime.answer_within(line, SOCKET_DEADLINE) => answer.map_err(|error| error.to_string()),
        error = trial.serve() => Err(error.to_string()),
    };
    let removed = {
        let runtime = runtime.clone();
        tokio::task::spawn_blocking(move || runtime.remove(&name)).await
    };
    let answer = answer?;
    match answer.code {
        Some(0) => removed.map_err(|panic| panic.to_string())?.map_err(|error| error.to_string()),
        Some(1) => Err(format!("it sees the socket, and nobody behind it ({})", answer.message())),
        Some(_) | None => Err(answer.message()),
    }
}
