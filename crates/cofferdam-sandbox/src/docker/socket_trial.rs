//! Whether a container of this engine reaches a socket of this machine: what `sealed` rests on.
//!
//! The socket's folder is mounted either way. But an engine on another machine, in a virtual machine, or a runtime with
//! a kernel of its own shows the file and not who listens behind it. Nobody can be asked; so it is tried, once for
//! each engine and runtime.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bollard::Docker;
use bollard::models::SystemInfo;
use cofferdam_core::{Policy, gateway, inside};
use tokio::io::AsyncWriteExt;

use super::DockerBackend;
use super::image::Image;
use super::throwaway::{Question, ask};
use crate::backend::Refusal;
use crate::container::Bound;
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
    let tried = trial(backend, docker, policy, image, &place).await;
    let _ = remove_tree(&place);
    match tried {
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
    let mut bounds = vec![Bound::read_only(place, inside::EGRESS)];
    bounds.extend(backend.mounted_binary(image).map(|binary| Bound::read_only(binary, inside::BINARY)));
    let mut command = backend.worker_command(image);
    command.truncate(1);
    command.extend(["try-socket".to_owned(), format!("{}/{}", inside::EGRESS, gateway::SOCKET)]);
    let question =
        Question { name: "socket", policy, image, command, bounds, memories: Vec::new(), deadline: DEADLINE };
    let answer = tokio::select! {
        answer = ask(backend, docker, question) => answer?,
        error = serve(&listener) => return Err(error.to_string()),
    };
    match answer.code {
        0 => Ok(()),
        _ => Err("it sees the socket, and nobody behind it".to_owned()),
    }
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
