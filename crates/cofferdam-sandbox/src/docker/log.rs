//! The worker's stdout: the engine's log, followed from its beginning.
//!
//! The log is a file of the engine. Whoever reads it slowly, or not at all, holds nobody up; whoever reads it again
//! reads the same. The engine splits long lines into pieces and gives them back without a newline between, so bytes
//! are simply passed on.

use std::pin::Pin;
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::query_parameters::LogsOptions;
use cofferdam_core::{FromWorker, worker_line};
use futures_util::StreamExt;
use tokio::io::{AsyncRead, AsyncWriteExt, DuplexStream};

use super::engine::is_missing;
use crate::folder::{Folder, Record};

/// How much may be read ahead of the reader: a few of the longest lines.
const READ_AHEAD: usize = 4 << 20;
/// How long to wait before an engine that does not answer is asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// Everything that the worker has printed and will print, until its container has ended.
pub(super) fn follow(docker: Docker, container: String, folder: Folder) -> Pin<Box<dyn AsyncRead + Send>> {
    let (reader, copy) = tokio::io::duplex(READ_AHEAD);
    let following =
        Following { docker, container, folder, copy, taken: 0, line: Vec::new(), complete: false };
    // The reader may go away at any time; that ends the following and nothing else.
    tokio::spawn(following.run());
    Box::pin(reader)
}

struct Following {
    docker: Docker,
    container: String,
    folder: Folder,
    copy: DuplexStream,
    /// Bytes that were passed on.
    taken: u64,
    /// The beginning of the line that is being passed on, long enough to tell what it is.
    line: Vec<u8>,
    /// Whether the worker's last line was passed on.
    complete: bool,
}

/// How one reading of the log ended.
enum Read {
    /// The engine has no more.
    Done,
    /// There is no such container.
    Missing,
    /// The engine stopped answering in the middle.
    Cut,
    /// Nobody reads what is passed on.
    Unread,
}

impl Following {
    async fn run(mut self) {
        // The first time, the engine knows best whether there is more to come.
        let mut over = self.has_end();
        loop {
            match self.read(!over).await {
                Read::Unread | Read::Missing => break,
                Read::Done if over || self.complete => break,
                // An engine that is gone for good has left an end behind.
                Read::Cut if self.has_end() => break,
                Read::Done | Read::Cut => tokio::time::sleep(PAUSE).await,
            }
            // Looked at before reading: what was printed before the end is then in the log.
            over = self.is_over().await;
        }
        let _ = self.copy.shutdown().await;
    }

    fn has_end(&self) -> bool {
        self.folder.has(Record::Exit)
    }

    /// Whether the container has ended. Unknown is no, and one that was not started yet has not ended.
    async fn is_over(&self) -> bool {
        use bollard::models::ContainerStateStatusEnum as Status;
        if self.has_end() {
            return true;
        }
        let found = self.docker.inspect_container(&self.container, None).await;
        let status = found.ok().and_then(|found| found.state).and_then(|state| state.status);
        matches!(status, Some(Status::EXITED | Status::DEAD))
    }

    /// Reads the log from its beginning and passes on what was not passed on before.
    async fn read(&mut self, follow: bool) -> Read {
        let options = LogsOptions { follow, stdout: true, stderr: false, ..LogsOptions::default() };
        let mut frames = Box::pin(self.docker.logs(&self.container, Some(options)));
        let mut skip = self.taken;
        while let Some(frame) = frames.next().await {
            let message = match frame {
                Ok(LogOutput::StdOut { message }) => message,
                Ok(LogOutput::StdErr { .. } | LogOutput::StdIn { .. } | LogOutput::Console { .. }) => {
                    continue;
                }
                Err(error) if is_missing(&error) => return Read::Missing,
                Err(_) => return Read::Cut,
            };
            let known = usize::try_from(skip).map_or(message.len(), |skip| skip.min(message.len()));
            skip -= known as u64;
            let new = &message[known..];
            if self.copy.write_all(new).await.is_err() {
                return Read::Unread;
            }
            self.taken += new.len() as u64;
            self.look_for_the_end(new);
            // An engine takes a while to say that there is no more.
            if self.complete {
                return Read::Done;
            }
        }
        Read::Done
    }

    /// Knows the worker's last line when it comes by: then nothing can be missing.
    fn look_for_the_end(&mut self, new: &[u8]) {
        /// No last line is longer.
        const LONGEST: usize = 64 << 10;
        for piece in new.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.complete = is_last(&self.line);
                self.line.clear();
            }
        }
    }
}

fn is_last(line: &[u8]) -> bool {
    // Most lines are long and something else; looking for the word is cheaper than reading them.
    let mentions = line.windows(worker_line::EXITED.len()).any(|word| word == worker_line::EXITED.as_bytes());
    let parsed = || FromWorker::parse(std::str::from_utf8(line).ok()?.trim()).ok();
    mentions && parsed().is_some_and(|line| line.line_type == worker_line::EXITED)
}
