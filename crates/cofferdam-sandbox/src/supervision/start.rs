//! Starting a shim, and hearing from it whether the sandbox came up.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use super::shim_sandbox::ShimSandbox;
use crate::backend::{Attachment, CreateError, Sandbox};
use crate::errors::failed;
use crate::folder::Folder;
use crate::linux::launcher::LaunchStatus;
use crate::linux::refusal::explain;
use crate::local::LocalExchange;

/// How long a sandbox of ours may take to come up. It takes milliseconds; a machine under load takes longer.
const DEADLINE: Duration = Duration::from_secs(30);

/// Starts the shim of a sandbox whose folder is ready, and waits until the worker runs.
pub(crate) async fn start(
    exchange: LocalExchange,
    command: &[String],
    attachment: Attachment,
) -> Result<ShimSandbox, CreateError> {
    match start_shim(&exchange.folder, command, attachment, DEADLINE).await {
        Ok(owner) => Ok(ShimSandbox { exchange, _owner: owner }),
        Err(error) => {
            discard(exchange).await;
            Err(error)
        }
    }
}

/// Nothing of a sandbox that did not come up stays behind.
pub(crate) async fn discard(exchange: LocalExchange) {
    let sandbox = ShimSandbox { exchange, _owner: None };
    if let Err(error) = sandbox.destroy().await {
        tracing::warn!(sandbox.id = %sandbox.id(), %error, "a sandbox that did not start could not be removed");
    }
}

/// Starts a shim, and waits until it says that the worker runs. What is held keeps an attached one alive.
pub(crate) async fn start_shim(
    folder: &Folder,
    command: &[String],
    attachment: Attachment,
    within: Duration,
) -> Result<Option<std::process::ChildStdin>, CreateError> {
    let id = folder.id();
    let (program, arguments) = command.split_first().expect("the shim has a command");
    let ticket = folder.issue_ticket().map_err(|error| failed(id, "write the shim's ticket", &error))?;
    let mut shim = std::process::Command::new(program);
    shim.args(arguments).arg(ticket).stdout(Stdio::null()).stderr(Stdio::piped());
    shim.stdin(if attachment == Attachment::Attached { Stdio::piped() } else { Stdio::null() });
    let mut child = shim.spawn().map_err(|error| failed(id, "start the shim", &error))?;
    let owner = child.stdin.take();
    let status = child.stderr.take().expect("stderr was piped");
    // Whoever ends first, the shim is waited for, so that it does not stay as a zombie.
    std::thread::spawn(move || child.wait());
    let status = tokio::process::ChildStderr::from_std(status)
        .map_err(|error| failed(id, "watch the shim", &error))?;
    let mut text = String::new();
    let read = tokio::time::timeout(within, status.take(64 << 10).read_to_string(&mut text)).await;
    match read {
        Err(_) => return Err(CreateError::Deadline { id: id.clone(), within }),
        Ok(Err(error)) => return Err(failed(id, "start the shim", &error)),
        Ok(Ok(_)) => {}
    }
    let parsed = text.lines().find_map(|line| serde_json::from_str::<LaunchStatus>(line).ok());
    match parsed {
        Some(LaunchStatus::Ready) => Ok(owner),
        Some(LaunchStatus::Error(error)) => Err(explain(id, &error)),
        None => Err(CreateError::Failed {
            id: id.clone(),
            message: format!("the launcher ended without a word: {}", text.trim()),
        }),
    }
}
