//! Running a command to its end.

use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use cofferdam_core::SandboxId;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::oneshot;

use crate::backend::{CreateError, ToolOutput};
use crate::errors::failed;

/// How much of its last words is kept.
const MOST_SAID: u64 = 64 << 10;

/// Runs a command to its end, gives it `input`, and keeps the last words of its stderr. It is killed as soon as `until` says why.
pub(crate) async fn run_command(
    id: &SandboxId,
    mut command: Command,
    input: Vec<u8>,
    until: impl Future<Output = String>,
) -> Result<ToolOutput, CreateError> {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let (started, starting) = oneshot::channel();
    // A launcher is tied to the thread that started it, so that thread stays until it has ended.
    let mut waiting = tokio::task::spawn_blocking(move || run(command, input, started));
    // Without one the command could not be started, or cannot be ended before it does so itself.
    let running = starting.await.ok();
    let ended = tokio::select! {
        ended = &mut waiting => ended,
        message = until => {
            drop(running);
            let _ = waiting.await;
            return Ok(ToolOutput { code: None, message });
        }
    };
    let (status, message) = ended
        .unwrap_or_else(|panic| Err(io::Error::other(panic)))
        .map_err(|error| failed(id, "run a tool", &error))?;
    Ok(ToolOutput { code: status.code(), message: message.trim().to_owned() })
}

/// Resolves when a command has had its time.
pub(crate) async fn after(deadline: Duration) -> String {
    tokio::time::sleep(deadline).await;
    format!("it took longer than {} s", deadline.as_secs())
}

fn run(
    mut command: Command,
    input: Vec<u8>,
    started: oneshot::Sender<Running>,
) -> io::Result<(ExitStatus, String)> {
    let mut child = command.spawn()?;
    // Before anybody waits for it: until then its number is its own. If nobody is there to take it, this ends the command.
    if let Ok(process) = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
        let _ = started.send(Running(process));
    }
    if let Some(mut stdin) = child.stdin.take() {
        // One that ends before it has read all of it says why itself.
        let _ = stdin.write_all(&input);
    }
    let mut message = String::new();
    if let Some(stderr) = child.stderr.take() {
        stderr.take(MOST_SAID).read_to_string(&mut message)?;
    }
    Ok((child.wait()?, message))
}

/// A process that ends with this.
struct Running(OwnedFd);

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended already cannot be sent anything.
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }
}
