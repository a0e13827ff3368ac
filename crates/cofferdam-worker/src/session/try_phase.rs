//! One try of a phase: its prompt, an agent's process of its own, and the gate.

use std::io;
use std::time::Instant;

use cofferdam_core::{
    AgentEnd, AgentReport, EventType, Gate, Job, PhaseOutput, PhasePlan, PhaseStarted, PromptFacts,
    SpecSetup, Work, judge_output, spec_prompt,
};
use serde_json::Value;

use super::Session;
use super::phases::Phases;
use super::process::{Admitted, Ran};
use crate::phase_output::{NoOutput, PhaseOutputFile};
use crate::preparation::{context, prepare};

/// Which try of which phase a process is.
pub(super) struct OfTry<'a> {
    pub plan: &'a PhasePlan,
    pub number: u32,
    /// When the phase's time is up.
    pub until: Instant,
    /// Which process of the job it is.
    pub process: u32,
}

impl OfTry<'_> {
    /// When its time is up, and how it ended then.
    pub(super) fn time_up(&self) -> (Instant, AgentEnd) {
        let PhasePlan { phase, seconds, .. } = *self.plan;
        (self.until, AgentEnd::PhaseTimedOut { phase, seconds })
    }
}

/// What came of a try.
pub(super) enum Tried {
    /// The gate has judged it.
    Judged(Option<Value>, Gate),
    /// Nothing more is done in this job.
    Ended(AgentEnd, Option<AgentReport>),
}

impl Session {
    pub(super) fn try_phase(
        &mut self,
        job: &Job,
        phases: &Phases<'_>,
        setup: &SpecSetup,
        of: &OfTry<'_>,
        gateway_url: Option<&str>,
        output_left: &mut u64,
    ) -> io::Result<Tried> {
        let (phase, number) = (of.plan.phase, of.number);
        let file = match PhaseOutputFile::make(&self.options.phase_outputs, phase, number) {
            Ok(file) => file,
            Err(error) => {
                return self.end_try(format!("failed to make a folder for the output of `{phase}`: {error}"));
            }
        };
        let before = phases.before(phase);
        let facts = PromptFacts {
            phase,
            title: &setup.title,
            description: &setup.description,
            before: &before,
            output_file: &file.path(),
            feedback: phases.feedback(phase),
            tries: number,
            template: of.plan.template.as_deref(),
        };
        let prompt = match spec_prompt(&facts) {
            Ok(prompt) => prompt,
            Err(error) => return self.end_try(error.to_string()),
        };
        let job = job_of_try(job, setup, of.plan, prompt, *output_left);
        self.output.emit(EventType::PhaseStarted.as_str(), &PhaseStarted { phase, number })?;
        let context = context(&job, gateway_url);
        let (adapter, command) = prepare(&job, &context);
        let held = match self.admit(&job, &command, of.process)? {
            Admitted::Held(held) => held,
            Admitted::Cancelled => return Ok(Tried::Ended(AgentEnd::Cancelled, None)),
            Admitted::NotStarted { reason } => return self.end_try(reason),
        };
        let ran = self.run_agent(&job, adapter, command, held, &context, Some(of))?;
        *output_left = ran.output_left;
        if self.cancelled {
            return Ok(Tried::Ended(AgentEnd::Cancelled, ran.report));
        }
        let read = file.read();
        if ends_the_job(&ran, matches!(read, Err(NoOutput::Missing(_)))) {
            return Ok(Tried::Ended(ran.end, ran.report));
        }
        if ran.has_left_processes {
            // They could change what the next phase reads and writes.
            return self.end_try(format!("processes of the phase `{phase}` could not be ended"));
        }
        let (output, gate) = match read {
            Ok(output) => {
                let gate = judge_output(phase, &output, &before);
                (Some(output), gate)
            }
            Err(why) => (None, Gate { score: 0.0, passed: false, reasons: vec![why.to_string()] }),
        };
        let Gate { score, passed, reasons } = gate.clone();
        let said = PhaseOutput { phase, number, output, passed, score, reasons };
        self.output.emit(EventType::PhaseOutput.as_str(), &said)?;
        Ok(Tried::Judged(said.output, gate))
    }

    fn end_try(&mut self, reason: String) -> io::Result<Tried> {
        let (end, report) = self.not_started(reason)?;
        Ok(Tried::Ended(end, report))
    }
}

/// Whether an agent's end is that of the job. One that failed and has written nothing had no chance: its model, its
/// login or its CLI is what has to be tried again, and not the phase.
fn ends_the_job(ran: &Ran, wrote_nothing: bool) -> bool {
    match ran.end {
        AgentEnd::Exited { code: 0 } | AgentEnd::Dismissed
            if ran.report.as_ref().is_none_or(|said| said.ok) =>
        {
            false
        }
        AgentEnd::Exited { .. } | AgentEnd::Signaled { .. } | AgentEnd::Dismissed => wrote_nothing,
        AgentEnd::NotStarted { .. }
        | AgentEnd::NoFolder { .. }
        | AgentEnd::Cancelled
        | AgentEnd::OutputLimit
        | AgentEnd::PhaseFailed { .. }
        | AgentEnd::PhaseTimedOut { .. } => true,
    }
}

/// The job of one try: the same sandbox and walls, with a task and variables of its own.
fn job_of_try(job: &Job, setup: &SpecSetup, plan: &PhasePlan, prompt: String, output_bytes: u64) -> Job {
    let own = [
        ("SPEC_ID", setup.id.to_string()),
        ("SPEC_PHASE", plan.phase.to_string()),
        ("PROJECT_ID", setup.project.to_string()),
    ];
    let mut env = job.env.clone();
    env.extend(own.map(|(name, value)| (name.to_owned(), value)));
    Job { work: Work::of_phase(setup, plan, prompt), env, spec: None, output_bytes, ..job.clone() }
}
