//! What a spec's worker says of its phases, judged again and recorded.
//!
//! The worker computes each gate to know whether to go on. But it shares a sandbox with the agent whose work it judges, so
//! its word does not count: the same judgement is made here, and a worker that differs from it is not believed any more.

use std::collections::BTreeMap;

use cofferdam_core::{
    AgentEnd, EventType, FailureClass, Gate, MOST_TRIES, NewEvent, Outcome, Phase, PhaseOutput, PhaseStarted,
    PhaseState, PromptFacts, SpecProgress, SpecSetup, judge_output, spec_prompt,
};
use cofferdam_store::PhaseNews;
use serde_json::json;

/// A line of the worker's: which one, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) seq: u64,
    pub(crate) at_ms: u64,
}

/// Why a spec is not worked on: its worker could not say what to do, or nothing that it does would pass.
pub(super) fn refuse(setup: &SpecSetup) -> Option<Outcome> {
    let before = BTreeMap::new();
    let why = setup.phases.iter().find_map(|plan| {
        if !plan.phase.is_judged() {
            return Some(format!(
                "the phase `{}` has no gate, and is not done in a run of a spec",
                plan.phase
            ));
        }
        let facts = PromptFacts {
            phase: plan.phase,
            title: &setup.title,
            description: &setup.description,
            before: &before,
            output_file: "",
            feedback: &[],
            tries: 1,
            template: plan.template.as_deref(),
        };
        spec_prompt(&facts).err().map(|error| error.to_string())
    });
    why.map(|why| Outcome::failed(FailureClass::Refused, why))
}

/// How far the spec of an attempt is, by our own reckoning.
pub(super) struct Phases {
    planned: Vec<Phase>,
    progress: SpecProgress,
    /// The try that was last said to begin.
    current: Option<PhaseStarted>,
}

impl Phases {
    pub(super) fn new(setup: &SpecSetup, progress: SpecProgress) -> Self {
        Self { planned: setup.phases.iter().map(|plan| plan.phase).collect(), progress, current: None }
    }

    /// Hears an event of the worker's on its way to the record.
    pub(super) fn hear(&mut self, event: &NewEvent) {
        if event.event_type == EventType::PhaseStarted {
            self.current = serde_json::from_value(event.data.clone()).ok();
        }
    }

    /// Judges what a try brought: what of it is to be recorded, or why the worker is not believed. Nothing is recorded
    /// twice: a worker whose output is read again from its beginning says what it said before.
    pub(super) fn judge(&mut self, said: PhaseOutput, place: Place) -> Result<Option<PhaseNews>, Outcome> {
        let PhaseOutput { phase, number, output, passed, reasons, .. } = said;
        let spent = self.spent(phase);
        if self.progress.outputs.contains_key(&phase) || number <= spent {
            return Ok(None);
        }
        if self.next() != Some(phase) || number != spent + 1 || number > MOST_TRIES {
            return Err(disbelieved(&format!(
                "it says that try {number} of `{phase}` has ended, which was not next"
            )));
        }
        let gate = match &output {
            Some(output) => {
                let before = self.progress.outputs.range(..phase);
                let before = before.map(|(&phase, output)| (phase, output.clone())).collect();
                judge_output(phase, output, &before)
            }
            // Why its file could not be read is for the worker to say.
            None => Gate { score: 0.0, passed: false, reasons },
        };
        if gate.passed != passed {
            let said = if passed { "has passed" } else { "has not passed" };
            return Err(disbelieved(&format!(
                "it says that `{phase}` {said} its gate, and the gate says otherwise"
            )));
        }
        self.progress.tries.insert(phase, number);
        if let Some(output) = output.clone().filter(|_| gate.passed) {
            self.progress.outputs.insert(phase, output);
        }
        let state = match gate.passed {
            true => PhaseState::Passed,
            false if number >= MOST_TRIES => PhaseState::Failed,
            false => PhaseState::Open,
        };
        Ok(Some(news(phase, number, state, output, gate, place)))
    }

    /// Judges the worker's last line: what of it is to be recorded, or why it is not believed.
    pub(super) fn conclude(&self, end: &AgentEnd, place: Place) -> Result<Option<PhaseNews>, Outcome> {
        match end {
            AgentEnd::Exited { code: 0 } => match self.next() {
                None => Ok(None),
                Some(phase) => {
                    Err(disbelieved(&format!("it says that it is done, and `{phase}` has not passed")))
                }
            },
            AgentEnd::PhaseTimedOut { phase, seconds } if self.next() == Some(*phase) => {
                let of_current = |started: &&PhaseStarted| started.phase == *phase;
                let number = self.current.as_ref().filter(of_current).map_or(0, |started| started.number);
                let tries = number.max(self.spent(*phase));
                let reasons =
                    vec![format!("the phase took longer than the {seconds} s that its tries have together")];
                let data = json!({ "phase": phase, "tries": tries, "reasons": reasons });
                Ok(Some(PhaseNews {
                    phase: *phase,
                    tries,
                    state: PhaseState::Failed,
                    output: None,
                    score: None,
                    reasons,
                    events: vec![event(place, EventType::PhaseFailed, data)],
                }))
            }
            // Whatever it says of a phase that is not next changes nothing that is on record.
            AgentEnd::PhaseTimedOut { .. }
            | AgentEnd::PhaseFailed { .. }
            | AgentEnd::Exited { .. }
            | AgentEnd::Signaled { .. }
            | AgentEnd::NotStarted { .. }
            | AgentEnd::NoFolder { .. }
            | AgentEnd::Cancelled
            | AgentEnd::OutputLimit
            | AgentEnd::Dismissed => Ok(None),
        }
    }

    fn next(&self) -> Option<Phase> {
        self.planned.iter().copied().find(|phase| !self.progress.outputs.contains_key(phase))
    }

    fn spent(&self, phase: Phase) -> u32 {
        self.progress.tries.get(&phase).copied().unwrap_or(0)
    }
}

fn news(
    phase: Phase,
    number: u32,
    state: PhaseState,
    output: Option<serde_json::Value>,
    gate: Gate,
    place: Place,
) -> PhaseNews {
    let Gate { score, passed, reasons } = gate;
    // What it brought is with the spec, and may be a megabyte.
    let judged =
        json!({ "phase": phase, "number": number, "score": score, "passed": passed, "reasons": reasons });
    let mut events = vec![event(place, EventType::PhaseOutput, judged)];
    // One line of the worker is one event: what follows from it has no line of its own, and is in the same transaction.
    let follows = |event_type, data| NewEvent::new(place.at_ms, event_type, data);
    match state {
        PhaseState::Passed => {
            events.push(follows(
                EventType::PhasePassed,
                json!({ "phase": phase, "number": number, "score": score }),
            ));
        }
        PhaseState::Failed => {
            let data = json!({ "phase": phase, "tries": number, "score": score, "reasons": reasons });
            events.push(follows(EventType::PhaseFailed, data));
        }
        PhaseState::Open => {}
    }
    PhaseNews { phase, tries: number, state, output, score: Some(score), reasons, events }
}

fn event(place: Place, event_type: EventType, data: serde_json::Value) -> NewEvent {
    NewEvent { worker_seq: Some(place.seq), ..NewEvent::new(place.at_ms, event_type, data) }
}

/// A worker that says what is not so has been changed, or is not ours.
fn disbelieved(why: &str) -> Outcome {
    let hint = "nothing of it was recorded; if the node was upgraded meanwhile, execute the spec again";
    Outcome::failed_with_hint(
        FailureClass::Seal,
        format!("the worker's word about a phase is not what its gate says: {why}"),
        hint,
    )
}

#[cfg(test)]
mod tests {
    use cofferdam_core::spec_example;
    use serde_json::Value;

    use super::*;

    const HERE: Place = Place { seq: 7, at_ms: 5 };

    fn setup(names: &[&str]) -> SpecSetup {
        let plan = |phase: &&str| json!({ "phase": phase, "seconds": 5, "max_turns": 3 });
        serde_json::from_value(json!({
            "id": "spec_00000000000000000000000001", "project": "prj_00000000000000000000000001",
            "agent": "codex", "title": "t", "description": "d", "phases_version": 1,
            "phases": names.iter().map(plan).collect::<Vec<_>>(),
        }))
        .unwrap()
    }

    fn phases(names: &[&str], progress: SpecProgress) -> Phases {
        Phases::new(&setup(names), progress)
    }

    fn said(phase: Phase, number: u32, output: Option<Value>, passed: bool) -> PhaseOutput {
        PhaseOutput { phase, number, output, passed, score: 1.0, reasons: vec!["by the worker".to_owned()] }
    }

    fn types(news: &PhaseNews) -> Vec<&'static str> {
        news.events.iter().map(|event| event.event_type.as_str()).collect()
    }

    fn disbelief(judged: Result<Option<PhaseNews>, Outcome>) -> String {
        match judged {
            Err(Outcome::Failed { class: FailureClass::Seal, message, .. }) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_template_that_names_no_file_and_a_phase_without_a_gate_are_refused() {
        assert_eq!(refuse(&setup(&["explore", "prd", "requirements", "design", "tasks", "sync"])), None);
        let mut own = setup(&["explore"]);
        own.phases[0].template = Some("Do something.".to_owned());
        for (setup, word) in [(own, "output_file"), (setup(&["implement"]), "`implement`")] {
            let Some(Outcome::Failed { class, message, .. }) = refuse(&setup) else { panic!("{word}") };
            assert_eq!(class, FailureClass::Refused);
            assert!(message.contains(word), "{message}");
        }
    }

    #[test]
    fn a_phase_that_passes_is_recorded_once_with_our_own_score() {
        let mut phases = phases(&["explore", "requirements"], SpecProgress::default());
        let output = spec_example(Phase::Explore);
        let good = || said(Phase::Explore, 1, Some(output.clone()), true);
        let news = phases.judge(PhaseOutput { score: 0.1, ..good() }, HERE).unwrap().unwrap();
        assert_eq!((news.state, news.tries, news.output.as_ref()), (PhaseState::Passed, 1, Some(&output)));
        assert!(news.score.unwrap() > 0.99 && news.reasons.is_empty(), "{news:?}");
        assert_eq!(types(&news), ["phase.output", "phase.passed"]);
        assert_eq!((news.events[0].worker_seq, news.events[1].worker_seq), (Some(7), None));
        assert!(news.events.iter().all(|event| event.data.get("output").is_none()));
        assert_eq!(phases.judge(good(), HERE), Ok(None), "it was read again");
        assert!(disbelief(phases.conclude(&AgentEnd::Exited { code: 0 }, HERE)).contains("`requirements`"));
    }

    #[test]
    fn the_third_try_that_does_not_pass_fails_the_phase() {
        let mut phases = phases(&["explore"], SpecProgress::default());
        for (number, state) in [(1, PhaseState::Open), (2, PhaseState::Open), (3, PhaseState::Failed)] {
            let news =
                phases.judge(said(Phase::Explore, number, Some(json!({})), false), HERE).unwrap().unwrap();
            assert_eq!((news.state, news.tries), (state, number));
            assert!(!news.reasons.is_empty() && news.reasons != ["by the worker"], "{:?}", news.reasons);
            let failed = types(&news).contains(&"phase.failed");
            assert_eq!(failed, state == PhaseState::Failed);
        }
        assert!(disbelief(phases.judge(said(Phase::Explore, 4, None, false), HERE)).contains("not next"));
    }

    #[test]
    fn why_a_file_could_not_be_read_is_the_workers_to_say() {
        let mut phases = phases(&["explore"], SpecProgress::default());
        let news = phases.judge(said(Phase::Explore, 1, None, false), HERE).unwrap().unwrap();
        assert_eq!((news.output, news.reasons), (None, vec!["by the worker".to_owned()]));
    }

    #[test]
    fn a_worker_that_differs_from_the_gate_is_not_believed() {
        let good = spec_example(Phase::Explore);
        for (output, passed) in [(Some(json!({})), true), (None, true), (Some(good), false)] {
            let mut phases = phases(&["explore"], SpecProgress::default());
            let judged = phases.judge(said(Phase::Explore, 1, output, passed), HERE);
            assert!(disbelief(judged).contains("the gate says otherwise"));
            assert_eq!(phases.next(), Some(Phase::Explore), "nothing of it counts");
        }
    }

    #[test]
    fn a_phase_that_is_not_next_is_not_believed_whatever_it_brought() {
        let output = || Some(spec_example(Phase::Design));
        let mut phases = phases(&["explore", "design"], SpecProgress::default());
        disbelief(phases.judge(said(Phase::Design, 1, output(), true), HERE));
        disbelief(phases.judge(said(Phase::Tasks, 1, output(), true), HERE));
        disbelief(phases.judge(said(Phase::Explore, 2, None, false), HERE));
    }

    #[test]
    fn the_gate_sees_what_was_passed_before_this_attempt() {
        let mut progress = SpecProgress::default();
        for phase in [Phase::Explore, Phase::Requirements, Phase::Design] {
            progress.outputs.insert(phase, spec_example(phase));
        }
        let mut phases = phases(&["tasks"], progress);
        let news = phases.judge(said(Phase::Tasks, 1, Some(spec_example(Phase::Tasks)), true), HERE);
        assert_eq!(news.unwrap().unwrap().state, PhaseState::Passed);
        assert_eq!(phases.conclude(&AgentEnd::Exited { code: 0 }, HERE), Ok(None));
    }

    #[test]
    fn a_phase_whose_time_is_up_has_failed() {
        let mut phases = phases(&["explore"], SpecProgress::default());
        phases.hear(&NewEvent::new(1, EventType::PhaseStarted, json!({ "phase": "explore", "number": 1 })));
        let end = AgentEnd::PhaseTimedOut { phase: Phase::Explore, seconds: 180 };
        let news = phases.conclude(&end, HERE).unwrap().unwrap();
        assert_eq!((news.state, news.tries, types(&news)), (PhaseState::Failed, 1, vec!["phase.failed"]));
        assert!(news.reasons[0].contains("180 s"), "{:?}", news.reasons);
    }
}
