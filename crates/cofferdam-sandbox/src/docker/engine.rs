//! The engine: where it is, whether it answers, what its errors mean, and how it is told of a container to attach to, kill or remove.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error;
use bollard::query_parameters::{AttachContainerOptions, KillContainerOptions, RemoveContainerOptions};
use bollard::{API_DEFAULT_VERSION, ClientVersion, Docker};
use cofferdam_core::{EngineAddress, with_causes};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::OnceCell;

use crate::backend::{Refusal, RefusalKind};

/// Longer than any single answer takes: pulling is never asked for, and streams have no end of their own.
const TIMEOUT_SECONDS: u64 = 120;

/// How long an engine may take to say that it is there.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// An engine of this machine, by its socket.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    socket: PathBuf,
    /// Once both sides have settled on a version. It holds no connection: each request makes its own.
    client: Arc<OnceCell<Docker>>,
}

impl Engine {
    /// The engine at an address. One on another machine is refused: what a sandbox shows are files of this one.
    pub(crate) fn at_address(address: &EngineAddress) -> Result<Self, Refusal> {
        let target = match address {
            EngineAddress::Unix(path) => return Ok(Self::at(path)),
            EngineAddress::Tcp(target) => target,
        };
        Err(Refusal::new(
            format!(
                "the engine at {target} is not on this machine: it could not show the workspace or the broker's socket"
            ),
            "export DOCKER_HOST=unix:///var/run/docker.sock, or use --mode native",
        )
        .about(RefusalKind::DaemonUnavailable))
    }

    /// The engine behind this socket.
    pub(crate) fn at(socket: &Path) -> Self {
        Self { socket: socket.to_owned(), client: Arc::default() }
    }

    /// The socket.
    pub(crate) fn path(&self) -> &Path {
        &self.socket
    }

    /// Whether somebody listens there.
    fn try_socket(&self) -> Result<(), Refusal> {
        let path = self.socket.display();
        match UnixStream::connect(&self.socket) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Refusal::new(
                format!("the Docker engine at {path} may not be used by this user"),
                "sudo usermod -aG docker \"$USER\", and log in again",
            )
            .about(RefusalKind::DaemonForbidden)),
            Err(error) => Err(Refusal::new(
                format!("no Docker engine answers at {path}: {error}"),
                "sudo systemctl start docker, or export DOCKER_HOST=unix:///path/of/its.sock",
            )
            .about(RefusalKind::DaemonUnavailable)),
        }
    }

    /// A client, once the engine answers and both sides have settled on a version.
    pub(crate) async fn connect(&self) -> Result<Docker, Refusal> {
        self.try_socket()?;
        let path = self.socket.to_string_lossy();
        let settle = async || -> Result<Docker, String> {
            let answered = tokio::time::timeout(ANSWER_DEADLINE, self.newest_version()).await;
            let version =
                answered.map_err(|_| format!("nothing within {} s", ANSWER_DEADLINE.as_secs()))??;
            Docker::connect_with_unix(&path, TIMEOUT_SECONDS, &version).map_err(|error| with_causes(&error))
        };
        let client = self.client.get_or_try_init(settle).await.map_err(|why| {
            Refusal::new(format!("the Docker engine at {path} does not answer: {why}"), "docker version")
                .about(RefusalKind::DaemonUnavailable)
        })?;
        Ok(client.clone())
    }

    /// The newest version of the interface that both sides know. Asked by a ping, whose answer's head says it: an
    /// engine takes a hundred times as long to list its versions.
    async fn newest_version(&self) -> Result<ClientVersion, String> {
        let answer = self.ping().await.map_err(|error| error.to_string())?;
        let said = version_in(&String::from_utf8_lossy(&answer)).ok_or("its answer is none of an engine")?;
        let (major, minor) = said.min((API_DEFAULT_VERSION.major_version, API_DEFAULT_VERSION.minor_version));
        Ok(ClientVersion { major_version: major, minor_version: minor })
    }

    async fn ping(&self) -> io::Result<Vec<u8>> {
        /// No head is longer.
        const LONGEST: u64 = 16 << 10;
        let mut stream = tokio::net::UnixStream::connect(&self.socket).await?;
        stream.write_all(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n").await?;
        let mut answer = Vec::new();
        stream.take(LONGEST).read_to_end(&mut answer).await?;
        Ok(answer)
    }
}

/// The version that the head of an answer names.
fn version_in(answer: &str) -> Option<(usize, usize)> {
    let mut lines = answer.split("\r\n").take_while(|line| !line.is_empty());
    let value = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("api-version").then(|| value.trim())
    })?;
    let (major, minor) = value.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Whether the engine says that there is no such thing.
pub(crate) fn is_missing(error: &Error) -> bool {
    status_of(error) == Some(404)
}

/// Whether the engine says that it is so already: stopped, removed, being removed.
pub(crate) fn is_done(error: &Error) -> bool {
    matches!(status_of(error), Some(304 | 404 | 409))
}

/// Whether the engine itself answered, and not the lack of one.
pub(crate) fn is_answer(error: &Error) -> bool {
    status_of(error).is_some() || matches!(error, Error::DockerContainerWaitError { .. })
}

fn status_of(error: &Error) -> Option<u16> {
    match error {
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

/// What the engine said, or what happened instead.
pub(crate) fn message_of(error: &Error) -> String {
    match error {
        Error::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        Error::DockerStreamError { error } => error.trim().to_owned(),
        other => with_causes(other),
    }
}

/// Where lines to a worker are written.
pub(super) type Stdin = Pin<Box<dyn AsyncWrite + Send>>;

/// The stdin of a container that runs or is about to. Letting go of it closes nothing inside.
pub(super) async fn attach_stdin(docker: &Docker, container: &str) -> Result<Stdin, Error> {
    let options = AttachContainerOptions { stdin: true, stream: true, ..AttachContainerOptions::default() };
    docker.attach_container(container, Some(options)).await.map(|attached| attached.input)
}

/// Kills a container, also a paused one.
pub(super) async fn kill(docker: &Docker, name: &str) -> Result<(), Error> {
    let options = || Some(KillContainerOptions { signal: "SIGKILL".to_owned() });
    match docker.kill_container(name, options()).await {
        // An engine does not kill what is paused.
        Err(error) if is_done(&error) && docker.unpause_container(name).await.is_ok() => {
            docker.kill_container(name, options()).await
        }
        Err(error) if is_done(&error) => Ok(()),
        answer => answer,
    }
}

/// Kills a container and removes it with whatever volumes an image gave it. One that is gone is fine.
pub(super) async fn remove_container(docker: &Docker, name: &str) -> Result<(), Error> {
    let options = RemoveContainerOptions { force: true, v: true, link: false };
    for _ in 0..50 {
        match docker.remove_container(name, Some(options.clone())).await {
            Ok(()) => return Ok(()),
            Err(error) if is_missing(&error) => return Ok(()),
            // Somebody removes it at this moment, or it is paused and cannot be killed.
            Err(error) if is_done(&error) => {
                let _ = docker.unpause_container(name).await;
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => return Err(error),
        }
    }
    docker.remove_container(name, Some(options)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_engine_of_this_machine_is_taken() {
        let at = |text: &str| Engine::at_address(&text.parse().unwrap());
        let socket = Path::new("/run/user/1000/docker.sock");
        assert_eq!(at("unix:///run/user/1000/docker.sock").unwrap().path(), socket);
        let refusal = at("tcp://10.0.0.1:2375").unwrap_err();
        assert!(refusal.problem.contains("not on this machine"), "{refusal:?}");
    }

    #[test]
    fn the_version_is_read_from_the_head_alone() {
        assert_eq!(version_in("HTTP/1.0 200 OK\r\nApi-Version: 1.41\r\n\r\nOK"), Some((1, 41)));
        assert_eq!(version_in("HTTP/1.0 200 OK\r\napi-version:1.53\r\n\r\n"), Some((1, 53)));
        for other in ["HTTP/1.0 200 OK\r\n\r\nApi-Version: 1.41\r\n", "", "Api-Version: new\r\n"] {
            assert_eq!(version_in(other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn an_engine_that_is_not_there_is_named_with_what_to_type() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Engine::at(&folder.path().join("docker.sock"));
        let refusal = missing.connect().await.unwrap_err();
        assert!(refusal.problem.contains("docker.sock"), "{refusal:?}");
        assert!(refusal.remedy.contains("systemctl start docker"), "{refusal:?}");
    }
}
