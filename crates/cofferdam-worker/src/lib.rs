//! The role inside the sandbox: measures the seal, runs the agent, reports what happens, and says how
//! it ended.
//!
//! Main function: [`worker_main`]. The straight line of one job is in `session/mod.rs`.
//!
//! The agent is hostile, and the worker is its parent and its witness. So the worker shares nothing
//! with it but three pipes, installs no signal handler that the agent could trigger, takes nothing that
//! it prints for a line of its own, and trusts no end-of-file. It knows no backend and no network; why a
//! sandbox died (memory, limits, the wall clock) is for the outside to say.

mod agent_process;
mod agent_stdin;
mod conversation;
mod ending;
mod environment;
#[doc(hidden)]
pub mod fuzzing;
mod gateway;
mod home_files;
mod host_lines;
mod input;
mod launch;
mod lines;
mod links;
mod merge;
mod orphaned;
mod output;
mod phase_output;
mod preparation;
mod reaper;
mod relay;
mod session;
mod start_folder;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use cofferdam_core::worker_line;
use rustix::process::{DumpableBehavior, getpid, set_child_subreaper, set_dumpable_behavior};
use serde_json::json;

pub use ending::Scope;
#[doc(hidden)]
pub use gateway::open_alone as open_gateway;

/// Threads that a worker has while its agent runs: the session, the host's lines, the reaper, the gateway, and
/// one for each of the agent's stdin, stdout and stderr. A limit on processes counts them.
pub const THREADS: u64 = 7;

/// Inputs that wait for the session: enough that readers rarely stop, few enough that a cancel waits
/// behind at most one megabyte of output (each piece is 64 KiB or less).
const WAITING_INPUTS: usize = 16;

/// How a worker works. Tests change it; the binary takes the default.
#[derive(Debug, Clone)]
pub struct Options {
    /// Our binary, which every process is started through.
    pub binary: PathBuf,
    /// What is ended together with the agent.
    pub scope: Scope,
    /// How often it says that it lives.
    pub heartbeat: Duration,
    /// How long it waits for its job, which follows within milliseconds of the engine's word that it runs; no engine is
    /// waited for this long. A worker without a job is nobody's: an engine that was killed while it made a container may
    /// have forgotten it, and whoever takes the run over makes another sandbox.
    pub job_within: Duration,
    /// How long an agent that was told that nothing more will come has to exit, and as long again once it was
    /// asked to by a signal.
    pub exit_grace: Duration,
    /// Where the agents of a spec's phases write their outputs, in folders that are made for them.
    pub phase_outputs: PathBuf,
}

impl Options {
    /// The options of the running process.
    ///
    /// # Errors
    /// If the path of our own binary cannot be read.
    pub fn of_this_process() -> io::Result<Self> {
        Ok(Self {
            binary: std::env::current_exe()?,
            scope: Scope::of_this_process(),
            heartbeat: Duration::from_secs(10),
            job_within: Duration::from_secs(120),
            exit_grace: Duration::from_secs(5),
            phase_outputs: "/tmp".into(),
        })
    }
}

/// Works as the worker on this process's stdin and stdout until the agent has ended.
///
/// 0 means that the last line was written, whatever it says; anything else that it was not.
#[must_use]
pub fn worker_main(options: Options) -> ExitCode {
    match work(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cofferdam worker: {error}");
            ExitCode::FAILURE
        }
    }
}

fn work(options: Options) -> io::Result<()> {
    // A dumpable worker could be traced, and its descriptors opened through /proc, by an agent of the
    // same user. That agent could then write a `worker.exited` of its own.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // Without this, on the host, a double fork would leave our tree and outlive the run.
    set_child_subreaper(Some(getpid()))?;

    let mut output = output::LineWriter::to_stdout()?;
    let started = json!({ "pid": std::process::id(), "version": env!("CARGO_PKG_VERSION") });
    output.emit(worker_line::STARTED, &started)?;
    output.flush()?;

    let (sender, inputs) = sync_channel(WAITING_INPUTS);
    let reaper = reaper::Reaper::start(sender.clone())?;
    host_lines::start_reading(sender.clone())?;
    if options.scope == Scope::Descendants {
        orphaned::start_watching(sender.clone())?;
    }
    session::Session::new(options, output, reaper, sender, inputs).run()
}
