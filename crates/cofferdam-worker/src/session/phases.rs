//! The phases of a spec, one after the other, each checked by its gate before the next starts.
//!
//! What follows is decided by [`Phases`], which knows no process and no clock; how one try is made is in `try_phase.rs`.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use cofferdam_core::{AgentEnd, Gate, Job, MOST_TRIES, Phase, PhasePlan, SpecProgress, SpecSetup};
use serde_json::Value;

use super::try_phase::{OfTry, Tried};
use super::{Exited, Session};

/// How far a spec is.
pub(super) struct Phases<'a> {
    setup: &'a SpecSetup,
    progress: SpecProgress,
    /// What somebody said of phases that they rejected. Every try is told, whatever the gate says of those before it.
    said: BTreeMap<Phase, Vec<String>>,
}

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// Another try of a phase, with its number.
    Try(&'a PhasePlan, u32),
    /// Every phase has passed.
    Done,
    /// A phase has not passed, and its tries are spent.
    Failed(Phase),
}

impl<'a> Phases<'a> {
    pub(super) fn new(setup: &'a SpecSetup, progress: SpecProgress) -> Self {
        // Before the first try there is no gate that could have said it.
        let by_people = |(phase, _): &(&Phase, &Vec<String>)| !progress.tries.contains_key(*phase);
        let said = progress.feedback.iter().filter(by_people);
        let said = said.map(|(&phase, said)| (phase, said.clone())).collect();
        Self { setup, progress, said }
    }

    pub(super) fn next(&self) -> Step<'a> {
        let Some(plan) =
            self.setup.phases.iter().find(|plan| !self.progress.outputs.contains_key(&plan.phase))
        else {
            return Step::Done;
        };
        match self.progress.tries.get(&plan.phase).copied().unwrap_or(0) {
            spent if spent >= MOST_TRIES => Step::Failed(plan.phase),
            spent => Step::Try(plan, spent + 1),
        }
    }

    /// The outputs of the phases before this one.
    pub(super) fn before(&self, phase: Phase) -> BTreeMap<Phase, Value> {
        self.progress.outputs.range(..phase).map(|(&phase, output)| (phase, output.clone())).collect()
    }

    /// What the next try of a phase is told.
    pub(super) fn feedback(&self, phase: Phase) -> &[String] {
        self.progress.feedback.get(&phase).map_or(&[], Vec::as_slice)
    }

    /// A try has brought this.
    pub(super) fn take(&mut self, phase: Phase, number: u32, output: Option<Value>, gate: Gate) {
        self.progress.tries.insert(phase, number);
        match output {
            Some(output) if gate.passed => {
                self.progress.outputs.insert(phase, output);
                self.progress.feedback.remove(&phase);
            }
            _ => {
                let said = self.said.get(&phase).cloned().unwrap_or_default();
                self.progress.feedback.insert(phase, [said, gate.reasons].concat());
            }
        }
    }
}

impl Session {
    /// Does the phases of a spec that have not passed yet.
    pub(super) fn do_phases(
        &mut self,
        job: &Job,
        setup: &SpecSetup,
        gateway_url: Option<&str>,
    ) -> io::Result<Exited> {
        self.keep_messages();
        let exited = self.try_phases(job, setup, gateway_url)?;
        self.refuse_kept()?;
        Ok(exited)
    }

    fn try_phases(&mut self, job: &Job, setup: &SpecSetup, gateway_url: Option<&str>) -> io::Result<Exited> {
        let mut phases = Phases::new(setup, job.spec.clone().unwrap_or_default());
        let mut current: Option<(Phase, Instant)> = None;
        let mut output_left = job.output_bytes;
        for process in 1.. {
            let (plan, number) = match phases.next() {
                Step::Done => return Ok((AgentEnd::Exited { code: 0 }, None)),
                Step::Failed(phase) => return Ok((AgentEnd::PhaseFailed { phase }, None)),
                Step::Try(plan, number) => (plan, number),
            };
            // All tries of a phase share its time.
            let until = match current {
                Some((phase, until)) if phase == plan.phase => until,
                _ => Instant::now() + Duration::from_secs(plan.seconds.into()),
            };
            current = Some((plan.phase, until));
            if Instant::now() >= until {
                let end = AgentEnd::PhaseTimedOut { phase: plan.phase, seconds: plan.seconds };
                return Ok((end, None));
            }
            let of = OfTry { plan, number, until, process };
            match self.try_phase(job, &phases, setup, &of, gateway_url, &mut output_left)? {
                Tried::Judged(output, gate) => phases.take(plan.phase, number, output, gate),
                Tried::Ended(end, report) => return Ok((end, report)),
            }
        }
        unreachable!("tries are counted, and so few that a process has a number")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn setup(phases: &[&str]) -> SpecSetup {
        let plan = |phase: &&str| json!({ "phase": phase, "seconds": 5, "max_turns": 3 });
        serde_json::from_value(json!({
            "id": "spec_00000000000000000000000001", "project": "prj_00000000000000000000000001",
            "agent": "codex", "title": "t", "description": "d", "phases_version": 1,
            "phases": phases.iter().map(plan).collect::<Vec<_>>(),
        }))
        .unwrap()
    }

    fn gate(passed: bool) -> Gate {
        Gate { score: f64::from(u8::from(passed)), passed, reasons: vec![format!("passed: {passed}")] }
    }

    fn tried(phases: &Phases<'_>) -> (Phase, u32) {
        let Step::Try(plan, number) = phases.next() else { panic!("{:?}", phases.next()) };
        (plan.phase, number)
    }

    #[test]
    fn a_phase_is_tried_until_it_passes_and_then_the_next_starts() {
        let setup = setup(&["explore", "design"]);
        let mut phases = Phases::new(&setup, SpecProgress::default());
        assert_eq!(tried(&phases), (Phase::Explore, 1));
        phases.take(Phase::Explore, 1, Some(json!(1)), gate(false));
        assert_eq!(tried(&phases), (Phase::Explore, 2));
        assert_eq!(phases.feedback(Phase::Explore), ["passed: false"]);
        phases.take(Phase::Explore, 2, Some(json!(2)), gate(true));
        assert_eq!(tried(&phases), (Phase::Design, 1));
        assert!(phases.feedback(Phase::Explore).is_empty());
        assert_eq!(phases.before(Phase::Design), BTreeMap::from([(Phase::Explore, json!(2))]));
        assert!(phases.before(Phase::Explore).is_empty());
        phases.take(Phase::Design, 1, Some(json!(3)), gate(true));
        assert_eq!(phases.next(), Step::Done);
    }

    #[test]
    fn every_try_is_told_why_somebody_rejected_the_phase() {
        let setup = setup(&["design"]);
        let feedback = BTreeMap::from([(Phase::Design, vec!["use SQLite".to_owned()])]);
        let mut phases = Phases::new(&setup, SpecProgress { feedback, ..SpecProgress::default() });
        for number in 1..=2 {
            phases.take(Phase::Design, number, None, gate(false));
            assert_eq!(phases.feedback(Phase::Design), ["use SQLite", "passed: false"]);
        }
    }

    #[test]
    fn what_was_done_before_is_not_done_again_and_spent_tries_count() {
        let setup = setup(&["explore", "requirements", "design"]);
        let progress = SpecProgress {
            outputs: BTreeMap::from([(Phase::Explore, json!(1))]),
            feedback: BTreeMap::from([(Phase::Requirements, vec!["shorter".to_owned()])]),
            tries: BTreeMap::from([(Phase::Explore, 3), (Phase::Requirements, 2)]),
        };
        let mut phases = Phases::new(&setup, progress);
        assert_eq!(tried(&phases), (Phase::Requirements, 3));
        assert_eq!(phases.feedback(Phase::Requirements), ["shorter"]);
        phases.take(Phase::Requirements, 3, None, gate(false));
        assert_eq!(phases.next(), Step::Failed(Phase::Requirements));
    }
}
