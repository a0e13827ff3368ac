//! One job from its first line to its last. The phases are functions that follow each other; each waits
//! with [`Session::next`] and nothing else.

mod awaiting;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use cofferdam_agent::{Adapter, Command, Context};
use cofferdam_core::{
    AgentEnd, AgentReport, EventType, Job, KeptSession, ToWorker, WorkerExited, worker_line,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agent_process::{AgentProcess, HeldAgent, end_of};
use crate::ending::kill_once;
use crate::gateway;
use crate::home_files;
use crate::input::Input;
use crate::links;
use crate::output::LineWriter;
use crate::preparation::{context, prepare};
use crate::reaper::Reaper;
use crate::relay::Allowance;
use crate::start_folder;
use crate::{Options, WAITING_INPUTS};
use awaiting::Awaited;

/// After the agent's end its children may still hold its outputs open. They are read until they have
/// been quiet for this long,
const QUIET: Duration = Duration::from_millis(200);
/// and never for longer than this.
const LINGER: Duration = Duration::from_millis(500);
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
        Self { options, output, reaper, sender, inputs, heartbeat_at, heard: BTreeSet::new() }
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
        let context = context(&job, gateway_url.as_deref());
        let (adapter, command) = prepare(&job, &context);
        let held = match HeldAgent::start(&self.options.binary, &job, &command, &self.reaper) {
            Ok((held, seal)) => {
                self.output.emit(worker_line::SEAL, &seal)?;
                held
            }
            Err(error) => return self.not_started(format!("probe failed: {error}")),
        };
        if !self.await_start(&job)? {
            drop(held);
            self.sweep(None)?;
            return Ok((AgentEnd::Cancelled, None));
        }
        if let Err(reason) = entered {
            self.log(&reason)?;
            self.sweep(None)?;
            return Ok((AgentEnd::NoFolder { reason }, None));
        }
        if let Err(error) = links::place(&command.links, &job.env) {
            self.log(&format!("what is said will not be remembered: {error}"))?;
        }
        let (exited, could_not_resume) = self.run_agent(&job, adapter, command, held, &context)?;
        if !could_not_resume {
            return Ok(exited);
        }
        self.log("the session cannot be resumed; a new one begins")?;
        let session = job.session.as_ref().map(|kept| KeptSession { resume: None, ..kept.clone() });
        let afresh = Context { session: session.as_ref(), ..context };
        let (adapter, command) = prepare(&job, &afresh);
        // Behind the walls that were judged: they are the job's.
        match HeldAgent::start(&self.options.binary, &job, &command, &self.reaper) {
            Ok((held, _)) => self.run_agent(&job, adapter, command, held, &afresh).map(|(exited, _)| exited),
            Err(error) => self.not_started(error.to_string()),
        }
    }

    fn not_started(&mut self, reason: String) -> io::Result<Exited> {
        self.log(&reason)?;
        self.sweep(None)?;
        Ok((AgentEnd::NotStarted { reason }, None))
    }

    /// Runs the agent to its end. The last says that it ended because its session cannot be resumed.
    fn run_agent(
        &mut self,
        job: &Job,
        adapter: Box<dyn Adapter + Send>,
        command: Command,
        held: HeldAgent,
        context: &Context<'_>,
    ) -> io::Result<(Exited, bool)> {
        if let Err(error) = home_files::write(&command.files, &job.env) {
            self.sweep(None)?;
            return Ok(((AgentEnd::NotStarted { reason: error.to_string() }, None), false));
        }
        let argv0 = command.argv.first();
        let mut agent = match held.release(job, adapter, &self.reaper, &self.sender) {
            Ok(agent) => agent,
            Err(error) => {
                self.sweep(None)?;
                return Ok(((AgentEnd::NotStarted { reason: error.to_string() }, None), false));
            }
        };
        let started = json!({ "argv0": argv0, "pid": agent.pid.as_raw_pid() });
        self.output.emit(EventType::AgentStarted.as_str(), &started)?;
        agent.relay.begin(context, &mut self.output)?;
        self.tell(&mut agent)?;

        self.attend(&mut agent, job)?;
        self.linger(&mut agent, job)?;
        self.sweep(Some((&mut agent, job)))?;

        self.refuse_the_rest(&mut agent)?;
        let report = agent.relay.report();
        // One that was ended is not started again.
        let could_not_resume = agent.ended_for.is_none() && agent.relay.could_not_resume();
        let exited = WorkerExited { end: agent.end(), report };
        self.output.emit(EventType::AgentFinished.as_str(), &finished(&exited))?;
        Ok(((exited.end, exited.report), could_not_resume))
    }

    /// Until the agent has ended or has to be killed.
    fn attend(&mut self, agent: &mut AgentProcess, job: &Job) -> io::Result<()> {
        let mut seen_idle = 0;
        while !agent.is_over() {
            seen_idle = if agent.is_idle() { seen_idle + 1 } else { 0 };
            // An idle agent is dismissed once everything was taken that was in the queue when it became idle:
            // so no message waits. An agent that goes on printing cannot put that off.
            let next = match seen_idle {
                0 => self.next(agent.act_at)?,
                1..=WAITING_INPUTS => self.waiting()?.map_or(Next::Nothing, Next::Input),
                _ => Next::Nothing,
            };
            match next {
                Next::Input(input) => self.take(agent, job, input)?,
                Next::Nothing => self.dismiss(agent),
                Next::Deadline if self.urge(agent) => {}
                Next::Deadline => break,
            }
        }
        Ok(())
    }

    /// Until what the agent and its children printed before its end has been read.
    fn linger(&mut self, agent: &mut AgentProcess, job: &Job) -> io::Result<()> {
        let at_most = Instant::now() + LINGER;
        agent.printed_at = Instant::now();
        while agent.ended.is_some() && agent.ended_for.is_none() && !agent.open_streams.is_empty() {
            match self.next(Some(at_most.min(agent.printed_at + QUIET)))? {
                Next::Input(input) => self.take(agent, job, input)?,
                Next::Deadline | Next::Nothing => break,
            }
        }
        Ok(())
    }

    /// Kills whatever is left, until nothing is. What the dead had printed is still read: their pipes
    /// end with them.
    fn sweep(&mut self, mut agent: Option<(&mut AgentProcess, &Job)>) -> io::Result<()> {
        let deadline = Instant::now() + SWEEP;
        let mut kill_at = Instant::now();
        loop {
            let childless = self.reaper.is_childless();
            let read = agent.as_ref().is_none_or(|(agent, _)| agent.open_streams.is_empty());
            // An agent is over only once its status has been taken from the queue.
            let ended = agent.as_ref().is_none_or(|(agent, _)| agent.ended.is_some());
            if childless && read && ended {
                return Ok(());
            }
            let now = Instant::now();
            if now >= deadline {
                return self.log("gave up waiting for killed processes to be gone");
            }
            if now >= kill_at && !childless {
                kill_once(self.options.scope);
                kill_at = now + SWEEP_STEP;
            }
            let wake_at = if childless { deadline } else { kill_at.min(deadline) };
            if let (Next::Input(input), Some((agent, job))) = (self.next(Some(wake_at))?, &mut agent) {
                self.take(agent, job, input)?;
            }
        }
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

    /// Everything that can happen while there is an agent.
    fn take(&mut self, agent: &mut AgentProcess, job: &Job, input: Input) -> io::Result<()> {
        match input {
            Input::Output { stream, bytes } => {
                agent.printed_at = Instant::now();
                if agent.relay.pass_on(stream, &bytes, &mut self.output)? == Allowance::Exceeded {
                    agent.ended_for.get_or_insert(AgentEnd::OutputLimit);
                }
                self.tell(agent)?;
            }
            Input::OutputEnd { stream } => {
                agent.open_streams.retain(|&open| open != stream);
                agent.relay.end(stream, &mut self.output)?;
                self.tell(agent)?;
            }
            Input::Reaped { pid, status } if pid == agent.pid => agent.ended = Some(end_of(status)),
            Input::Host(ToWorker::Cancel { grace_ms }) if agent.ended.is_none() => {
                self.ask_to_end(agent, Duration::from_millis(grace_ms));
            }
            Input::Host(ToWorker::Job(second)) => self.repeat_job(job, &second)?,
            Input::Host(ToWorker::Message { id, kind, content }) => {
                self.pass_on(agent, id, &kind, content)?;
            }
            // A cancel of what has ended and a repeated start change nothing, and `end` only says that
            // no message will come. Other processes that were reaped were orphans.
            Input::Host(ToWorker::Cancel { .. } | ToWorker::Start | ToWorker::End)
            | Input::Reaped { .. }
            | Input::Childless
            | Input::Orphaned
            | Input::Malformed { .. } => {}
        }
        Ok(())
    }

    /// A second cancel can only shorten the grace.
    fn ask_to_end(&mut self, agent: &mut AgentProcess, grace: Duration) {
        agent.ended_for.get_or_insert(AgentEnd::Cancelled);
        self.reaper.signal_group(agent.pid, Signal::TERM);
        // A grace beyond what the clock can count is no limit.
        let kill_at = Instant::now().checked_add(grace);
        agent.act_at = agent.act_at.into_iter().chain(kill_at).min();
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

/// The data of `agent.finished`: the end, and what the agent says of it.
fn finished(exited: &WorkerExited) -> Value {
    let mut data = json!(exited.end);
    if let Some(report) = &exited.report {
        data["report"] = json!(report);
    }
    data
}
