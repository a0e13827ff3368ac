//! One job from its first line to its last. Its steps are functions that follow each other; each waits
//! with [`Session::next`] and nothing else. Each process of the agent is a step of `process.rs`.

mod awaiting;
mod phases;
mod process;
mod try_phase;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use cofferdam_agent::{Context, Message};
use cofferdam_core::{AgentEnd, AgentReport, EventType, KeptSession, Work, WorkerExited, worker_line};
use serde_json::json;

use crate::Options;
use crate::agent_process::HeldAgent;
use crate::ending::kill_once;
use crate::gateway;
use crate::input::Input;
use crate::links;
use crate::output::LineWriter;
use crate::preparation::{context, prepare};
use crate::reaper::Reaper;
use crate::start_folder;
use awaiting::Awaited;
use process::Admitted;

/// How long killed processes may take to be gone. Only one that is stuck in the kernel needs longer.
const SWEEP: Duration = Duration::from_secs(2);
/// How often what is left is looked for and killed again.
const SWEEP_STEP: Duration = Duration::from_millis(20);

/// A worker at work.
pub(crate) struct Session {
    pub options: Options,
    pub output: LineWriter<File>,
    pub reaper: Reaper,
    sender: SyncSender<Input>,
    inputs: Receiver<Input>,
    heartbeat_at: Instant,
    /// Messages that were passed on. A host that does not know whether one arrived sends it again.
    pub heard: BTreeSet<String>,
    /// Messages that wait for the next agent, where one may follow.
    pub kept: Option<Vec<Message>>,
    /// Messages that were passed on to an agent which another one may follow.
    pub given: Vec<Message>,
    /// Whether the host has asked for the end, even if there was no agent then.
    cancelled: bool,
}

/// How an agent ended, and what it says of it.
type Exited = (AgentEnd, Option<AgentReport>);

/// What a wait ended with.
enum Next {
    Input(Input),
    Deadline,
    /// Nothing was there, and nothing was waited for.
    Nothing,
}

impl Session {
    pub(crate) fn new(
        options: Options,
        output: LineWriter<File>,
        reaper: Reaper,
        sender: SyncSender<Input>,
        inputs: Receiver<Input>,
    ) -> Self {
        let heartbeat_at = Instant::now() + options.heartbeat;
        Self {
            options,
            output,
            reaper,
            sender,
            inputs,
            heartbeat_at,
            heard: BTreeSet::new(),
            kept: None,
            given: Vec::new(),
            cancelled: false,
        }
    }

    /// Does the job, and says how it ended. An error means that the host cannot be reached; nothing of
    /// the agent runs on then.
    pub(crate) fn run(mut self) -> io::Result<()> {
        self.report_job().inspect_err(|_| self.abandon())
    }

    fn report_job(&mut self) -> io::Result<()> {
        let (end, report) = self.do_job()?;
        self.output.emit(worker_line::EXITED, &WorkerExited { end, report })?;
        self.output.flush()
    }

    fn do_job(&mut self) -> io::Result<Exited> {
        let mut job = match self.await_job()? {
            Awaited::Job(job) => *job,
            Awaited::Cancelled => return Ok((AgentEnd::Cancelled, None)),
            Awaited::Nothing => {
                return self.not_started(format!("no job came within {:?}", self.options.job_within));
            }
        };
        // Told once the seal was accepted: what is measured does not depend on it.
        let entered = start_folder::enter(&mut job);
        let gateway_url = match job.gateway.as_ref().map(gateway::open).transpose() {
            Ok(opened) => opened.map(|opened| format!("http://127.0.0.1:{}", opened.port)),
            Err(error) => return self.not_started(format!("failed to open the gateway: {error}")),
        };
        if let Work::Spec(setup) = &job.work {
            return self.do_phases(&job, setup, gateway_url.as_deref());
        }
        let context = context(&job, gateway_url.as_deref());
        let (adapter, command) = prepare(&job, &context);
        let held = match self.admit(&job, &command, 1)? {
            Admitted::Held(held) => held,
            Admitted::Cancelled => return Ok((AgentEnd::Cancelled, None)),
            Admitted::NotStarted { reason } => return self.not_started(reason),
        };
        if let Err(reason) = entered {
            drop(held);
            self.log(&reason)?;
            self.sweep(None)?;
            return Ok((AgentEnd::NoFolder { reason }, None));
        }
        if let Err(error) = links::place(&command.links, &job.env) {
            self.log(&format!("what is said will not be remembered: {error}"))?;
        }
        let ran = self.run_agent(&job, adapter, command, held, &context, None)?;
        if !ran.could_not_resume {
            return Ok((ran.end, ran.report));
        }
        self.log("the session cannot be resumed; a new one begins")?;
        let session = job.session.as_ref().map(|kept| KeptSession { resume: None, ..kept.clone() });
        let afresh = Context { session: session.as_ref(), ..context };
        let (adapter, command) = prepare(&job, &afresh);
        // Behind the walls that were judged: they are the job's.
        match HeldAgent::start(&self.options.binary, &job, &command, &self.reaper) {
            Ok((held, _)) => {
                let ran = self.run_agent(&job, adapter, command, held, &afresh, None)?;
                Ok((ran.end, ran.report))
            }
            Err(error) => self.not_started(error.to_string()),
        }
    }

    fn not_started(&mut self, reason: String) -> io::Result<Exited> {
        self.log(&reason)?;
        self.sweep(None)?;
        Ok((AgentEnd::NotStarted { reason }, None))
    }

    /// Kills whatever is left, and tells nobody.
    fn abandon(&self) {
        let deadline = Instant::now() + SWEEP;
        while !self.reaper.is_childless() && Instant::now() < deadline {
            kill_once(self.options.scope);
            // Readers and the reaper wait for room in the queue.
            let _ = self.inputs.recv_timeout(SWEEP_STEP);
        }
    }

    pub(crate) fn log(&mut self, text: &str) -> io::Result<()> {
        self.output.emit(EventType::Log.as_str(), &json!({ "text": text }))
    }

    /// Waits for the next input. The host sees every line before the worker waits; heartbeats and
    /// malformed lines are dealt with on the way.
    fn next(&mut self, deadline: Option<Instant>) -> io::Result<Next> {
        loop {
            let now = Instant::now();
            if now >= self.heartbeat_at {
                self.output.emit(EventType::Heartbeat.as_str(), &json!({}))?;
                self.heartbeat_at = now + self.options.heartbeat;
            }
            // Before the queue: an agent that never stops printing must not put off its own end.
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Ok(Next::Deadline);
            }
            let received = match self.inputs.try_recv() {
                Ok(input) => Ok(input),
                Err(_) => {
                    self.output.flush()?;
                    let wake_at = deadline.map_or(self.heartbeat_at, |at| at.min(self.heartbeat_at));
                    self.inputs.recv_timeout(wake_at.saturating_duration_since(now))
                }
            };
            match received {
                Ok(input) => {
                    if let Some(input) = self.sift(input)? {
                        return Ok(Next::Input(input));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the session holds a sender itself"),
            }
        }
    }

    /// The next input, if there is one already.
    fn waiting(&mut self) -> io::Result<Option<Input>> {
        while let Ok(input) = self.inputs.try_recv() {
            if let Some(input) = self.sift(input)? {
                return Ok(Some(input));
            }
        }
        Ok(None)
    }

    /// Deals with what concerns no phase in particular.
    fn sift(&mut self, input: Input) -> io::Result<Option<Input>> {
        match input {
            Input::Malformed { bytes, why } => {
                self.log(&format!("ignored a line of {bytes} bytes on stdin: {why}"))?;
                Ok(None)
            }
            Input::Orphaned => Err(io::Error::other("nobody watches over the worker any more")),
            input => Ok(Some(input)),
        }
    }
}
