//! The agent's process: started, read, and what is known of its end.

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::path::Path;
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Instant;

use cofferdam_agent::{Adapter, Command, Stdin, Stream};
use cofferdam_core::{AgentEnd, InsideSeal, Job};
use rustix::process::{Pid, WaitStatus};

use crate::agent_stdin::AgentStdin;
use crate::input::Input;
use crate::launch::{Held, Launch, LaunchError};
use crate::reaper::Reaper;
use crate::relay::Relay;

/// What is read at a time; a pipe holds as much.
const CHUNK: usize = 64 << 10;

/// A running agent, and what has happened to it.
pub(crate) struct AgentProcess {
    pub pid: Pid,
    pub relay: Relay,
    /// How its own process ended, once it has.
    pub ended: Option<AgentEnd>,
    /// What the worker ended it for, if that was first.
    pub ended_for: Option<AgentEnd>,
    /// Its stdin, if it reads lines and more may follow.
    pub stdin: Option<AgentStdin>,
    /// Whether it was told that nothing more will come, and is to exit.
    pub dismissed: bool,
    /// When it will be killed, or, after its dismissal, urged first.
    pub act_at: Option<Instant>,
    /// When its time is up, if it has one of its own, and how it ended then.
    pub time_up: Option<(Instant, AgentEnd)>,
    /// Outputs that somebody still holds open.
    pub open_streams: Vec<Stream>,
    /// When it last printed something.
    pub printed_at: Instant,
}

/// An agent behind its walls that has not started.
pub(crate) struct HeldAgent {
    held: Held,
    stdin: Option<PipeWriter>,
    stdout: PipeReader,
    stderr: PipeReader,
}

impl HeldAgent {
    /// Puts the agent behind its walls, and says what was measured there.
    pub(crate) fn start(
        binary: &Path,
        job: &Job,
        command: &Command,
        reaper: &Reaper,
    ) -> Result<(Self, InsideSeal), LaunchError> {
        let failed = |source| LaunchError::Spawn { directory: job.working_directory.clone(), source };
        let (stdout, stdout_writer) = io::pipe().map_err(failed)?;
        let (stderr, stderr_writer) = io::pipe().map_err(failed)?;
        let (stdin_reader, stdin) = match command.stdin {
            Stdin::Null => (None, None),
            Stdin::Lines => {
                let (reader, writer) = io::pipe().map_err(failed)?;
                (Some(reader), Some(writer))
            }
        };
        let argv = command.argv.iter().map(OsString::from).collect();
        let launch = Launch { binary, job, env: &command.env, argv };
        let mut held = launch.hold(reaper, stdin_reader, stdout_writer, stderr_writer)?;
        match held.seal() {
            Ok(seal) => Ok((Self { held, stdin, stdout, stderr }, seal)),
            Err(error) => {
                held.end(reaper);
                Err(error.with_complaint(&complaint(stderr)))
            }
        }
    }

    /// Lets it start.
    pub(crate) fn release(
        self,
        job: &Job,
        adapter: Box<dyn Adapter + Send>,
        reaper: &Reaper,
        sender: &SyncSender<Input>,
    ) -> Result<AgentProcess, LaunchError> {
        let failed = |source| LaunchError::Spawn { directory: job.working_directory.clone(), source };
        // The readers are there before the agent, which could otherwise use up the processes that the
        // sandbox may have and leave us without threads.
        start_reader(Stream::Stdout, self.stdout, sender.clone()).map_err(failed)?;
        start_reader(Stream::Stderr, self.stderr, sender.clone()).map_err(failed)?;
        let stdin = self.stdin.map(AgentStdin::start).transpose().map_err(failed)?;
        Ok(AgentProcess {
            pid: self.held.release(reaper)?,
            relay: Relay::new(adapter, job.output_bytes),
            ended: None,
            ended_for: None,
            stdin,
            dismissed: false,
            act_at: None,
            time_up: None,
            open_streams: vec![Stream::Stdout, Stream::Stderr],
            printed_at: Instant::now(),
        })
    }
}

/// What a process of ours that failed has said so far.
fn complaint(mut stderr: PipeReader) -> String {
    const SHOWN: usize = 2_000;
    let mut said = vec![0; SHOWN];
    // One that cannot even be killed keeps the pipe open.
    let count = rustix::io::ioctl_fionbio(&stderr, true).map_or(0, |()| stderr.read(&mut said).unwrap_or(0));
    String::from_utf8_lossy(&said[..count]).trim().to_owned()
}

impl AgentProcess {
    /// Whether nothing is left to be waited for: it has ended by itself, or it has to be killed now.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_some() || self.ended_for == Some(AgentEnd::OutputLimit)
    }

    /// When something has to be done about it, whatever it does itself.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let time_up = self.time_up.as_ref().map(|(at, _)| *at);
        self.act_at.into_iter().chain(time_up).min()
    }

    /// Whether it has nothing left to do, and can still be told so.
    pub(crate) fn is_idle(&self) -> bool {
        self.stdin.is_some() && self.relay.is_idle()
    }

    /// How it ended. What the worker ended it for says more than the signal that did it.
    pub(crate) fn end(self) -> AgentEnd {
        // Without either it was cancelled and could not be killed; the kernel ends it with the worker.
        self.ended_for.or(self.ended).unwrap_or(AgentEnd::Cancelled)
    }
}

/// The end that a wait status tells of.
pub(crate) fn end_of(status: WaitStatus) -> AgentEnd {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => AgentEnd::Exited { code },
        (None, Some(signal)) => AgentEnd::Signaled { signal },
        (None, None) => unreachable!("the reaper asks for nothing but ends"),
    }
}

fn start_reader(stream: Stream, mut pipe: PipeReader, sender: SyncSender<Input>) -> io::Result<()> {
    let name = if stream == Stream::Stdout { "agent-stdout" } else { "agent-stderr" };
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        let mut chunk = vec![0; CHUNK];
        loop {
            let input = match pipe.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => Input::OutputEnd { stream },
                Ok(count) => Input::Output { stream, bytes: chunk[..count].to_vec() },
            };
            let ends = matches!(input, Input::OutputEnd { .. });
            if sender.send(input).is_err() || ends {
                return;
            }
        }
    })?;
    Ok(())
}
