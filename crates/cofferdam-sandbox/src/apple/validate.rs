//! What this runtime can and cannot hold.

use std::path::{Path, PathBuf};

use cofferdam_core::{Network, Policy};

use super::abilities::Kind;
use super::arguments::plain;
use super::{AppleBackend, socket_trial};
use crate::backend::{Refusal, RefusalKind};
use crate::container::check_mounts;
use crate::supervision::Runtime;

/// Where engines listen.
const ENGINES: [&str; 4] = [
    "/var/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
];

/// Refuses what the runtime cannot hold.
pub(super) async fn validate(backend: &AppleBackend, policy: &Policy) -> Result<(), Refusal> {
    let runtime = backend.runtime(policy)?;
    let sockets = engine_sockets(&runtime);
    check_mounts(policy, sockets.iter().map(PathBuf::as_path))?;
    for mount in &policy.mounts {
        plain(&mount.path)?;
    }
    let abilities = backend.abilities(&runtime).await?;
    abilities.check(policy)?;
    check_service(&runtime, abilities.kind).await?;
    check_network(&runtime, policy).await?;
    let image = backend.image(&runtime, policy).await?;
    if policy.network == Network::Sealed || policy.egress.model {
        socket_trial::try_socket(backend, &runtime, &abilities, policy, &image).await?;
    }
    Ok(())
}

/// The sockets that this runtime may be reached by.
fn engine_sockets(runtime: &Runtime) -> Vec<PathBuf> {
    let named = ["DOCKER_HOST", "CONTAINER_HOST", "CONTAINERD_ADDRESS"];
    let named = named.iter().filter_map(|name| runtime.env.get(*name));
    let named = named.map(|address| address.strip_prefix("unix://").unwrap_or(address));
    let own = runtime.env.get("XDG_RUNTIME_DIR").map(Path::new);
    let own =
        own.into_iter().flat_map(|folder| [folder.join("docker.sock"), folder.join("podman/podman.sock")]);
    ENGINES.into_iter().chain(named).map(PathBuf::from).chain(own).filter(|path| path.is_absolute()).collect()
}

/// Many runtimes are the client of a service.
pub(super) async fn check_service(runtime: &Runtime, kind: Kind) -> Result<(), Refusal> {
    let asked = runtime.clone();
    let answer = tokio::task::spawn_blocking(move || asked.answers()).await;
    let answer = answer.unwrap_or_else(|panic| Err(std::io::Error::other(panic)));
    let why = match answer {
        Ok(answer) if answer.is_ok() => return Ok(()),
        Ok(answer) => answer.message(),
        Err(error) => error.to_string(),
    };
    let program = runtime.name();
    Err(Refusal::new(
        format!("`{program}` does not work here: {why}"),
        match kind {
            Kind::Apple => format!("{program} system start"),
            Kind::Docker => "sudo systemctl start docker".to_owned(),
            Kind::Nerdctl => "sudo systemctl start containerd".to_owned(),
            Kind::Podman | Kind::Unknown => format!("{program} info"),
        },
    )
    .about(RefusalKind::DaemonUnavailable))
}

async fn check_network(runtime: &Runtime, policy: &Policy) -> Result<(), Refusal> {
    let name = match policy.network {
        Network::None | Network::Sealed => return Ok(()),
        Network::Open => policy.container.network.name(),
    };
    let Some(name) = name else { return Ok(()) };
    let program = runtime.name();
    let arguments = ["network", "inspect", name].map(str::to_owned).to_vec();
    let why = match runtime.answer(arguments).await {
        Ok(answer) if answer.is_ok() => return Ok(()),
        Ok(answer) => answer.message(),
        Err(error) => error.to_string(),
    };
    Err(Refusal::new(
        format!("`{program}` cannot use the network {name}: {why}"),
        format!("{program} network ls; then set sandbox.apple.network to one of them, or to `default`"),
    ))
}
