//! Writes to the agent's stdin from a thread of its own: an agent that does not read must not stop the worker.

use std::io::{self, PipeWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

/// Lines that may wait for the agent. An agent that leaves so many unread reads none.
const MOST_WAITING: usize = 256;

/// A message is refused when so many wait, so that there is room for what the adapter has to answer.
const CROWDED: usize = 64;

/// The agent's stdin.
pub(crate) struct AgentStdin {
    lines: SyncSender<String>,
    waiting: Arc<AtomicUsize>,
}

impl AgentStdin {
    /// Starts the thread. End-of-file follows what was written when this is dropped.
    pub(crate) fn start(mut pipe: PipeWriter) -> io::Result<Self> {
        let (lines, receiver) = sync_channel::<String>(MOST_WAITING);
        let waiting = Arc::new(AtomicUsize::new(0));
        let of_thread = Arc::clone(&waiting);
        thread::Builder::new().name("agent-stdin".to_owned()).spawn(move || {
            for mut line in receiver {
                line.push('\n');
                let written = pipe.write_all(line.as_bytes());
                of_thread.fetch_sub(1, Ordering::Relaxed);
                // Nobody reads any more. That is the agent's end, which others see.
                if written.is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { lines, waiting })
    }

    /// Hands over a line. `false` if the agent does not read; one that has closed its stdin has ended or will,
    /// and that is for others to see.
    #[must_use]
    pub(crate) fn write(&self, line: String) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        !matches!(self.lines.try_send(line), Err(TrySendError::Full(_)))
    }

    /// Whether the agent has left so much unread that nothing more should be said to it.
    pub(crate) fn is_crowded(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= CROWDED
    }
}
