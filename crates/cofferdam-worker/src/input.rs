//! Everything that the session waits for, in one queue, so that one thread decides and writes.

use cofferdam_agent::Stream;
use cofferdam_core::ToWorker;
use rustix::process::{Pid, WaitStatus};

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Input {
    /// A line of the host.
    Host(ToWorker),
    /// A line of the host that is not of the protocol. It is described and not repeated, since it may
    /// hold part of a job's environment.
    Malformed { bytes: usize, why: String },
    /// The agent printed this.
    Output { stream: Stream, bytes: Vec<u8> },
    /// Nobody holds this output of the agent open any more.
    OutputEnd { stream: Stream },
    /// A process ended and was reaped: the agent, the probe, or an orphan.
    Reaped { pid: Pid, status: WaitStatus },
    /// There was no child left at that moment. Ask the reaper for whether that is still so.
    Childless,
    /// Whoever started the worker is dead.
    Orphaned,
}
