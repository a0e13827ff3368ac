//! A node that keeps failing to make sandboxes of a mode leaves that mode alone for a while.
//!
//! Without it one broken machine would empty the queue: it fails fastest, so it claims most. This file never reads the
//! clock.

use std::collections::BTreeMap;

use cofferdam_core::{FailureClass, Mode, Outcome};

/// So many failures in a row rest a mode.
const FAILURES: u32 = 5;
/// How long the first rest is. Each further one is twice as long.
const FIRST_REST_MS: u64 = 30_000;
/// The longest rest.
const LONGEST_REST_MS: u64 = 600_000;

/// What an attempt says about its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It had a sandbox.
    Made,
    /// It had none, and that is the node's fault.
    Failed(String),
    /// It did not come to that, or it was the run's own fault.
    Nothing,
}

/// A mode that is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) mode: Mode,
    /// What went wrong last.
    pub(super) reason: String,
    pub(super) until_ms: u64,
}

/// Which modes a node should leave alone, judged by how its attempts ended.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    circuits: BTreeMap<Mode, Circuit>,
}

#[derive(Debug)]
enum Circuit {
    /// Attempts are made, and so many have failed in a row.
    Closed { failures: u32 },
    /// No attempt is made before this time; then one.
    Resting { rest: Rest, length_ms: u64 },
    /// One attempt is under way, to find out.
    Probing { rest: Rest, length_ms: u64 },
}

impl Verdict {
    /// What an outcome says. A refusal says nothing: whoever asks for an image that is not there must not be able to put
    /// a node to rest; whether the mode itself can be used is checked then.
    pub(super) fn of(outcome: &Outcome) -> Self {
        let Outcome::Failed { class, message, .. } = outcome else {
            return match outcome {
                Outcome::Cancelled => Self::Nothing,
                Outcome::Succeeded | Outcome::TimedOut { .. } | Outcome::Failed { .. } => Self::Made,
            };
        };
        match class {
            FailureClass::Sandbox | FailureClass::Seal => Self::Failed(message.clone()),
            FailureClass::Workspace
            | FailureClass::Repository
            | FailureClass::RepositoryHost
            | FailureClass::Refused
            | FailureClass::Lost
            | FailureClass::Engine
            | FailureClass::AgentMissing
            | FailureClass::Auth => Self::Nothing,
            FailureClass::Agent
            | FailureClass::Gate
            | FailureClass::OutOfMemory
            | FailureClass::PidsLimit
            | FailureClass::DiskLimit
            | FailureClass::OutputLimit
            | FailureClass::WorkerCrashed
            | FailureClass::Collect
            | FailureClass::Publish
            | FailureClass::Budget
            | FailureClass::Quota
            | FailureClass::Overloaded
            | FailureClass::Model => Self::Made,
        }
    }
}

impl Breaker {
    /// Whether a run of this mode may be claimed now.
    pub(super) fn allows(&self, mode: Mode, now_ms: u64) -> bool {
        match self.circuits.get(&mode) {
            None | Some(Circuit::Closed { .. }) => true,
            Some(Circuit::Resting { rest, .. }) => rest.until_ms <= now_ms,
            Some(Circuit::Probing { .. }) => false,
        }
    }

    /// A run of this mode was claimed. After a rest it is the only one until it is known how it ends.
    pub(super) fn claimed(&mut self, mode: Mode) {
        let Some(circuit) = self.circuits.get_mut(&mode) else { return };
        if let Circuit::Resting { rest, length_ms } = circuit {
            *circuit = Circuit::Probing { rest: rest.clone(), length_ms: *length_ms };
        }
    }

    /// An attempt of this mode has ended. Returns the rest that begins now, if one does.
    pub(super) fn ended(&mut self, mode: Mode, verdict: Verdict, now_ms: u64) -> Option<Rest> {
        let circuit = self.circuits.entry(mode).or_insert(Circuit::Closed { failures: 0 });
        let resting = |reason: String, length_ms: u64| {
            let rest = Rest { mode, reason, until_ms: now_ms.saturating_add(length_ms) };
            (Circuit::Resting { rest: rest.clone(), length_ms }, Some(rest))
        };
        let (next, begun) = match (&*circuit, verdict) {
            (_, Verdict::Made) => (Circuit::Closed { failures: 0 }, None),
            (Circuit::Closed { failures }, Verdict::Failed(reason)) if failures + 1 >= FAILURES => {
                resting(reason, FIRST_REST_MS)
            }
            (Circuit::Closed { failures }, Verdict::Failed(_)) => {
                (Circuit::Closed { failures: failures + 1 }, None)
            }
            (Circuit::Probing { length_ms, .. }, Verdict::Failed(reason)) => {
                resting(reason, (length_ms * 2).min(LONGEST_REST_MS))
            }
            // The probe said nothing, so the next run is one.
            (Circuit::Probing { rest, length_ms }, Verdict::Nothing) => {
                let rest = Rest { until_ms: now_ms, ..rest.clone() };
                (Circuit::Resting { rest, length_ms: *length_ms }, None)
            }
            // Claimed before the rest began.
            (Circuit::Resting { .. }, Verdict::Failed(_))
            | (Circuit::Resting { .. } | Circuit::Closed { .. }, Verdict::Nothing) => return None,
        };
        *circuit = next;
        begun
    }

    /// The modes that are left alone, or of which it is just being found out whether they work again.
    pub(super) fn rests(&self) -> impl Iterator<Item = &Rest> {
        self.circuits.values().filter_map(|circuit| match circuit {
            Circuit::Closed { .. } => None,
            Circuit::Resting { rest, .. } | Circuit::Probing { rest, .. } => Some(rest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODE: Mode = Mode::Docker;

    fn failed() -> Verdict {
        Verdict::Failed("no space left".to_owned())
    }

    fn broken(now_ms: u64) -> Breaker {
        let mut breaker = Breaker::default();
        for _ in 0..FAILURES {
            assert!(breaker.allows(MODE, now_ms));
            breaker.ended(MODE, failed(), now_ms);
        }
        breaker
    }

    #[test]
    fn a_mode_rests_after_failures_in_a_row_and_others_do_not() {
        let breaker = broken(1_000);
        assert!(!breaker.allows(MODE, 1_000) && !breaker.allows(MODE, 1_000 + FIRST_REST_MS - 1));
        assert!(breaker.allows(Mode::Native, 1_000));
        let rests: Vec<_> = breaker.rests().cloned().collect();
        let until_ms = 1_000 + FIRST_REST_MS;
        assert_eq!(rests, [Rest { mode: MODE, reason: "no space left".to_owned(), until_ms }]);
    }

    #[test]
    fn a_sandbox_in_between_begins_the_count_anew() {
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            for _ in 0..FAILURES - 1 {
                breaker.ended(MODE, failed(), 0);
            }
            breaker.ended(MODE, Verdict::Made, 0);
        }
        assert!(breaker.allows(MODE, 0) && breaker.rests().next().is_none());
    }

    #[test]
    fn what_says_nothing_neither_helps_nor_harms() {
        let mut breaker = Breaker::default();
        for _ in 0..FAILURES {
            breaker.ended(MODE, Verdict::Nothing, 0);
            breaker.ended(MODE, failed(), 0);
        }
        assert!(!breaker.allows(MODE, 0));
    }

    #[test]
    fn after_the_rest_one_attempt_finds_out() {
        let mut breaker = broken(0);
        assert!(breaker.allows(MODE, FIRST_REST_MS));
        breaker.claimed(MODE);
        assert!(!breaker.allows(MODE, u64::MAX), "one at a time");
        breaker.ended(MODE, Verdict::Made, FIRST_REST_MS);
        assert!(breaker.allows(MODE, FIRST_REST_MS) && breaker.rests().next().is_none());
    }

    #[test]
    fn each_rest_is_twice_as_long_up_to_a_bound() {
        let mut breaker = broken(0);
        let mut now = FIRST_REST_MS;
        let mut lengths = Vec::new();
        for _ in 0..7 {
            breaker.claimed(MODE);
            let rest = breaker.ended(MODE, failed(), now).unwrap();
            lengths.push((rest.until_ms - now) / 1000);
            now = rest.until_ms;
        }
        assert_eq!(lengths, [60, 120, 240, 480, 600, 600, 600]);
    }

    #[test]
    fn a_probe_that_says_nothing_is_followed_by_another() {
        let mut breaker = broken(0);
        breaker.claimed(MODE);
        breaker.ended(MODE, Verdict::Nothing, FIRST_REST_MS + 5);
        assert!(breaker.allows(MODE, FIRST_REST_MS + 5));
    }

    #[test]
    fn attempts_that_were_claimed_before_the_rest_do_not_prolong_it() {
        let mut breaker = broken(0);
        assert_eq!(breaker.ended(MODE, failed(), 20_000), None);
        assert!(breaker.allows(MODE, FIRST_REST_MS));
    }

    #[test]
    fn a_run_that_asks_for_the_impossible_is_not_the_nodes_fault() {
        let outcome = |class| Outcome::failed(class, "x");
        assert_eq!(Verdict::of(&outcome(FailureClass::Refused)), Verdict::Nothing);
        assert_eq!(Verdict::of(&outcome(FailureClass::Seal)), Verdict::Failed("x".to_owned()));
        assert_eq!(Verdict::of(&outcome(FailureClass::Agent)), Verdict::Made);
        assert_eq!(Verdict::of(&Outcome::Succeeded), Verdict::Made);
    }
}
