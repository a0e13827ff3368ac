//! Running a command to its end.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use cofferdam_core::SandboxId;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::backend::{CreateError, ToolOutput};
use crate::errors::failed;

/// Runs a command to its end, with a deadline, and keeps the last words of its stderr.
pub(crate) async fn run_command(
    id: &SandboxId,
    mut command: std::process::Command,
    deadline: Duration,
) -> Result<ToolOutput, CreateError> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let (started, starting) = tokio::sync::oneshot::channel();
    // A launcher is tied to the thread that started it, so that thread stays until it has ended.
    let waiting = tokio::task::spawn_blocking(move || -> io::Result<(std::process::ExitStatus, String)> {
        let mut child = command.spawn()?;
        // Before anybody waits for it: until then its number is its own.
        if let Ok(process) = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            let _ = started.send(process);
        }
        let mut message = String::new();
        if let Some(stderr) = child.stderr.take() {
            io::Read::read_to_string(&mut io::Read::take(stderr, 64 << 10), &mut message)?;
        }
        Ok((child.wait()?, message))
    });
    let kill = async {
        let process = starting.await;
        tokio::time::sleep(deadline).await;
        process.ok()
    };
    let ended = tokio::select! {
        ended = waiting => ended,
        process = kill => {
            if let Some(process) = process {
                let _ = pidfd_send_signal(process, Signal::KILL);
            }
            return Ok(ToolOutput { code: None, message: format!("it took longer than {} s", deadline.as_secs()) });
        }
    };
    let (status, message) = ended
        .unwrap_or_else(|panic| Err(io::Error::other(panic)))
        .map_err(|error| failed(id, "run a tool", &error))?;
    Ok(ToolOutput { code: status.code(), message: message.trim().to_owned() })
}
