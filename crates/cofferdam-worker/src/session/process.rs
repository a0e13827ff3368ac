//! One agent process of a job, from its walls to its end: measured, held, started, its lines, and what is left of it.

use std::io;
use std::time::{Duration, Instant};

use cofferdam_agent::{Adapter, Command, Context};
use cofferdam_core::{
    AgentEnd, AgentReport, EventType, Job, NumberedSeal, ToWorker, WorkerExited, worker_line,
};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::try_phase::OfTry;
use super::{Next, SWEEP, SWEEP_STEP, Session};
use crate::WAITING_INPUTS;
use crate::agent_process::{AgentProcess, HeldAgent, end_of};
use crate::ending::kill_once;
use crate::home_files;
use crate::input::Input;
use crate::relay::Allowance;

/// After the agent's end its children may still hold its outputs open. They are read until they have
/// been quiet for this long,
const QUIET: Duration = Duration::from_millis(200);
/// and never for longer than this.
const LINGER: Duration = Duration::from_millis(500);

/// What came of putting an agent behind its walls.
pub(super) enum Admitted {
    /// It stands there, and the host said that it may start.
    Held(HeldAgent),
    Cancelled,
    NotStarted {
        reason: String,
    },
}

/// Whether everything that was to be killed is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swept {
    Wholly,
    Partly,
}

/// How an agent ended.
pub(super) struct Ran {
    pub end: AgentEnd,
    /// What it says of that.
    pub report: Option<AgentReport>,
    /// Whether that was because its session cannot be resumed.
    pub could_not_resume: bool,
    /// Whether something of it could not be killed.
    pub has_left_processes: bool,
    /// How much may still be printed of what it might print.
    pub output_left: u64,
}

impl Ran {
    fn not_started(reason: String, job: &Job) -> Self {
        Self {
            end: AgentEnd::NotStarted { reason },
            report: None,
            could_not_resume: false,
            has_left_processes: false,
            output_left: job.output_bytes,
        }
    }
}

impl Session {
    /// Puts an agent behind its walls, reports what was measured there, and waits for the word.
    pub(super) fn admit(&mut self, job: &Job, command: &Command, number: u32) -> io::Result<Admitted> {
        let held = match HeldAgent::start(&self.options.binary, job, command, &self.reaper) {
            Ok((held, inside)) => {
                self.output.emit(worker_line::SEAL, &NumberedSeal { number, inside })?;
                held
            }
            Err(error) => return Ok(Admitted::NotStarted { reason: format!("probe failed: {error}") }),
        };
        if self.await_start(job, number)? {
            return Ok(Admitted::Held(held));
        }
        drop(held);
        self.sweep(None)?;
        Ok(Admitted::Cancelled)
    }

    /// Runs an agent to its end.
    pub(super) fn run_agent(
        &mut self,
        job: &Job,
        adapter: Box<dyn Adapter + Send>,
        command: Command,
        held: HeldAgent,
        context: &Context<'_>,
        of: Option<&OfTry<'_>>,
    ) -> io::Result<Ran> {
        if let Err(error) = home_files::write(&command.files, &job.env) {
            self.sweep(None)?;
            return Ok(Ran::not_started(error.to_string(), job));
        }
        let argv0 = command.argv.first();
        let mut agent = match held.release(job, adapter, &self.reaper, &self.sender) {
            Ok(agent) => agent,
            Err(error) => {
                self.sweep(None)?;
                return Ok(Ran::not_started(error.to_string(), job));
            }
        };
        agent.time_up = of.map(OfTry::time_up);
        let started = json!({ "argv0": argv0, "pid": agent.pid.as_raw_pid() });
        self.output.emit(EventType::AgentStarted.as_str(), &marked(started, of))?;
        agent.relay.begin(context, &mut self.output)?;
        self.tell(&mut agent)?;
        self.pass_on_kept(&mut agent)?;

        self.attend(&mut agent, job)?;
        self.linger(&mut agent, job)?;
        let swept = self.sweep(Some((&mut agent, job)))?;

        self.refuse_the_rest(&mut agent)?;
        let report = agent.relay.report();
        // One that was ended is not started again.
        let could_not_resume = agent.ended_for.is_none() && agent.relay.could_not_resume();
        let output_left = agent.relay.bytes_left();
        let exited = WorkerExited { end: agent.end(), report };
        self.output.emit(EventType::AgentFinished.as_str(), &marked(finished(&exited), of))?;
        let has_left_processes = swept == Swept::Partly;
        Ok(Ran { end: exited.end, report: exited.report, could_not_resume, has_left_processes, output_left })
    }

    /// Until the agent has ended or has to be killed.
    fn attend(&mut self, agent: &mut AgentProcess, job: &Job) -> io::Result<()> {
        let mut seen_idle = 0;
        while !agent.is_over() {
            seen_idle = if agent.is_idle() { seen_idle + 1 } else { 0 };
            // An idle agent is dismissed once everything was taken that was in the queue when it became idle:
            // so no message waits. An agent that goes on printing cannot put that off.
            let next = match seen_idle {
                0 => self.next(agent.wake_at())?,
                1..=WAITING_INPUTS => self.waiting()?.map_or(Next::Nothing, Next::Input),
                _ => Next::Nothing,
            };
            match next {
                Next::Input(input) => self.take(agent, job, input)?,
                Next::Nothing => self.dismiss(agent),
                Next::Deadline if self.end_in_time(agent, job) => {}
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
    pub(super) fn sweep(&mut self, mut agent: Option<(&mut AgentProcess, &Job)>) -> io::Result<Swept> {
        let deadline = Instant::now() + SWEEP;
        let mut kill_at = Instant::now();
        loop {
            let childless = self.reaper.is_childless();
            let read = agent.as_ref().is_none_or(|(agent, _)| agent.open_streams.is_empty());
            // An agent is over only once its status has been taken from the queue.
            let ended = agent.as_ref().is_none_or(|(agent, _)| agent.ended.is_some());
            if childless && read && ended {
                return Ok(Swept::Wholly);
            }
            let now = Instant::now();
            if now >= deadline {
                self.log("gave up waiting for killed processes to be gone")?;
                return Ok(Swept::Partly);
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
            Input::Host(ToWorker::Cancel { grace_ms }) => {
                // What has ended is not ended again, but nothing follows it.
                self.cancelled = true;
                if agent.ended.is_none() {
                    self.ask_to_end(agent, AgentEnd::Cancelled, Duration::from_millis(grace_ms));
                }
            }
            Input::Host(ToWorker::Job(second)) => self.repeat_job(job, &second)?,
            Input::Host(ToWorker::Message { id, kind, content }) => {
                self.pass_on(agent, id, &kind, content)?;
            }
            // A repeated start changes nothing, and `end` only says that no message will come. Other
            // processes that were reaped were orphans.
            Input::Host(ToWorker::Start { .. } | ToWorker::End)
            | Input::Reaped { .. }
            | Input::Childless
            | Input::Orphaned
            | Input::Malformed { .. } => {}
        }
        Ok(())
    }

    /// Asks an agent to end whose time is up; `false` if it is not.
    fn end_in_time(&mut self, agent: &mut AgentProcess, job: &Job) -> bool {
        match agent.time_up.take_if(|(at, _)| Instant::now() >= *at) {
            Some((_, end)) => {
                self.ask_to_end(agent, end, Duration::from_millis(job.grace_ms));
                true
            }
            None => false,
        }
    }

    /// A second time can only shorten the grace.
    fn ask_to_end(&mut self, agent: &mut AgentProcess, end: AgentEnd, grace: Duration) {
        agent.ended_for.get_or_insert(end);
        self.reaper.signal_group(agent.pid, Signal::TERM);
        // A grace beyond what the clock can count is no limit.
        let kill_at = Instant::now().checked_add(grace);
        agent.act_at = agent.act_at.into_iter().chain(kill_at).min();
    }
}

/// The data of an event of a process, with the try that it is.
fn marked(mut data: Value, of: Option<&OfTry<'_>>) -> Value {
    if let Some(of) = of {
        data["phase"] = json!(of.plan.phase);
        data["number"] = json!(of.number);
    }
    data
}

/// The data of `agent.finished`: the end, and what the agent says of it.
fn finished(exited: &WorkerExited) -> Value {
    let mut data = json!(exited.end);
    if let Some(report) = &exited.report {
        data["report"] = json!(report);
    }
    data
}
