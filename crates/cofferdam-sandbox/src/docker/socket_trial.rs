//! Whether a container of this engine reaches a socket of this machine: what `sealed` rests on.
//!
//! The socket's folder is mounted either way. But an engine on another machine, in a virtual machine, or a runtime with
//! a kernel of its own shows the file and not who listens behind it. Nobody can be asked; so it is tried, once for
//! each engine and runtime.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bollard::Docker;
use bollard::models::SystemInfo;
use bollard::query_parameters::{CreateContainerOptions, WaitContainerOptions};
use cofferdam_core::{Network, Policy, gateway, inside};
use futures_util::StreamExt;
use tokio::io::AsyncWriteExt;

use super::DockerBackend;
use super::body::{Parts, body};
use super::engine::message_of;
use super::image::Image;
use super::plan::label;
use super::sandbox::remove_container;
use crate::backend::Refusal;
use crate::container::{Bound, Identity};
use crate::remove::remove_tree;

/// A container that takes longer is stuck.
const DEADLINE: Duration = Duration::from_secs(30);
/// What is said through the socket.
const WORD: &[u8] = b"cofferdam";

/// Tries it, unless it worked before with the same engine, runtime and binary.
pub(super) async fn try_socket(
    backend: &DockerBackend,
    docker: &Docker,
    info: &SystemInfo,
    policy: &Policy,
    image: &Image,
) -> Result<(), Refusal> {
    let known = known_path(&backend.options.state, info, policy);
    if known.exists() {
        return Ok(());
    }
    let place = tempdir(&backend.options.state).map_err(|error| failed(&error.to_string()))?;
    let tried = tokio::time::timeout(DEADLINE, trial(backend, docker, policy, image, &place)).await;
    let _ = remove_tree(&place);
    match tried.unwrap_or_else(|_| Err(format!("it took longer than {} s", DEADLINE.as_secs()))) {
        Ok(()) => {
            let _ = known.parent().map(fs::create_dir_all);
            let _ = fs::write(&known, "");
            Ok(())
        }
        Err(why) => Err(failed(&why)),
    }
}

/// The role: connects to the socket that is named and passes on what it hears. 0 if it heard the word.
#[must_use]
pub fn try_socket_main(path: &Path) -> ExitCode {
    let heard = || -> io::Result<Vec<u8>> {
        let mut heard = vec![0; WORD.len()];
        UnixStream::connect(path)?.read_exact(&mut heard)?;
        Ok(heard)
    };
    match heard() {
        Ok(word) if word == WORD => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stdout(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn failed(why: &str) -> Refusal {
    Refusal {
        problem: format!(
            "a container of this engine cannot reach the broker's socket, so it cannot be sealed: {why}"
        ),
        remedy:
            "use --mode native or an engine of this machine (not in a virtual machine), or say --network open"
                .to_owned(),
    }
}

/// The mark of a trial that worked.
fn known_path(state: &Path, info: &SystemInfo, policy: &Policy) -> PathBuf {
    let parts = [
        info.id.as_deref().unwrap_or_default(),
        info.server_version.as_deref().unwrap_or_default(),
        info.kernel_version.as_deref().unwrap_or_default(),
        policy
            .container
            .runtime
            .as_ref()
            .map(|name| name.as_str())
            .or(info.default_runtime.as_deref())
            .unwrap_or_default(),
        env!("CARGO_PKG_VERSION"),
    ];
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
    };
    state.join("engines").join(parts.map(plain).join("_"))
}

/// A folder that the user inside may walk.
fn tempdir(state: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let place = state.join("trials").join(format!("socket-{:016x}", u64::from_ne_bytes(random)));
    fs::create_dir_all(&place)?;
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755))?;
    Ok(place)
}

async fn trial(
    backend: &DockerBackend,
    docker: &Docker,
    policy: &Policy,
    image: &Image,
    place: &Path,
) -> Result<(), String> {
    let listener = crate::socket::listen(place, gateway::SOCKET).map_err(|error| error.to_string())?;
    fs::set_permissions(place.join(gateway::SOCKET), fs::Permissions::from_mode(0o666))
        .map_err(|error| error.to_string())?;
    listener.set_nonblocking(true).map_err(|error| error.to_string())?;
    let listener = tokio::net::UnixListener::from_std(listener).map_err(|error| error.to_string())?;
    let name = format!("cofferdam-{}", place.file_name().unwrap_or_default().to_string_lossy());
    let policy = Policy { network: Network::None, ..policy.clone() };
    let mut bounds = vec![Bound::read_only(place, inside::EGRESS)];
    bounds.extend(backend.mounted_binary(image).map(|binary| Bound::read_only(binary, inside::BINARY)));
    let mut command = backend.worker_command(image);
    command.truncate(1);
    command.extend(["try-socket".to_owned(), format!("{}/{}", inside::EGRESS, gateway::SOCKET)]);
    let parts = Parts {
        policy: &policy,
        image,
        who: Identity { uid: inside::UID, gid: inside::UID, ids: None },
        labels: HashMap::from([(
            label::STATE.to_owned(),
            backend.state_id().map_err(|error| error.to_string())?,
        )]),
        command,
        bounds,
        memories: Vec::new(),
        volumes: Vec::new(),
        stdin: false,
    };
    let options = CreateContainerOptions { name: Some(name.clone()), ..CreateContainerOptions::default() };
    let mut body = body(parts);
    // If we die on the way nobody comes for it: it has no folder that tells of it.
    if let Some(host) = &mut body.host_config {
        host.auto_remove = Some(true);
    }
    docker.create_container(Some(options), body).await.map_err(|error| message_of(&error))?;
    let ended = tokio::select! {
        ended = run(docker, &name) => ended,
        error = serve(&listener) => Err(error.to_string()),
    };
    let removed = remove_container(docker, &name).await.map_err(|error| message_of(&error));
    ended.and(removed)
}

/// Says the word to whoever comes.
async fn serve(listener: &tokio::net::UnixListener) -> io::Error {
    loop {
        match listener.accept().await {
            Ok((mut stream, _)) => {
                let _ = stream.write_all(WORD).await;
                let _ = stream.shutdown().await;
            }
            Err(error) => return error,
        }
    }
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
