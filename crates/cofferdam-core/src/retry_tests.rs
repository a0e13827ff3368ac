use proptest::prelude::*;

use super::*;
use crate::ids::RunId;
use crate::outcome::FailureClass;

fn any_policy() -> impl Strategy<Value = RetryPolicy> {
    (any::<u32>(), any::<u64>(), any::<u64>()).prop_map(|(max_attempts, first_delay_ms, max_delay_ms)| {
        RetryPolicy { max_attempts, first_delay_ms, max_delay_ms }
    })
}

fn any_class() -> impl Strategy<Value = FailureClass> {
    proptest::sample::select(FailureClass::ALL)
}

fn any_attempt() -> impl Strategy<Value = AttemptRef> {
    (any::<u128>(), 1..=u32::MAX).prop_map(|(run, number)| attempt(run, number))
}

fn attempt(run: u128, number: u32) -> AttemptRef {
    AttemptRef { run: RunId::new(1, run), number }
}

fn failed(class: FailureClass) -> Outcome {
    Outcome::failed(class, "why")
}

/// A failure at which the server said when to come back.
fn told(class: FailureClass, retry_after_ms: u64) -> Outcome {
    let retry_after_ms = Some(retry_after_ms);
    Outcome::Failed { class, message: "why".to_owned(), hint: None, exit_code: None, retry_after_ms }
}

fn pause(decision: Decision) -> Option<u64> {
    match decision {
        Decision::RetryAfter { delay_ms } => Some(delay_ms),
        Decision::Finish | Decision::DeadLetter { .. } => None,
    }
}

proptest! {
    #[test]
    fn a_failure_is_repeated_exactly_if_its_class_allows_it_and_attempts_remain(
        class in any_class(), attempt in any_attempt(), policy in any_policy(),
    ) {
        let decision = decide(&attempt, &failed(class), None, &policy);
        let class = ErrorClass::from(class);
        let allows = match class.rule() {
            RetryRule::Backoff | RetryRule::WhenTold | RetryRule::Soon => true,
            RetryRule::Never | RetryRule::Over => false,
        };
        prop_assert_eq!(pause(decision).is_some(), allows && attempt.number < policy.max_attempts);
        let dead = Decision::DeadLetter { class };
        prop_assert!(pause(decision).is_some() || decision == dead);
    }

    #[test]
    fn the_pause_is_at_least_half_of_the_doubled_one_and_at_most_all_of_it(
        run in any::<u128>(), number in 1..200_u32, policy in any_policy(),
    ) {
        let decision = decide(&attempt(run, number), &failed(FailureClass::Lost), None, &policy);
        if let Some(pause) = pause(decision) {
            let doubled = policy.first_delay_ms.saturating_mul(1 << (number - 1).min(32)).min(policy.max_delay_ms);
            prop_assert!((doubled / 2..=doubled).contains(&pause), "{pause} of {doubled}");
        }
    }

    #[test]
    fn nobody_comes_back_before_the_server_said(
        attempt in any_attempt(), policy in any_policy(), wait in any::<u64>(),
        class in proptest::sample::select(&[FailureClass::Quota, FailureClass::Overloaded, FailureClass::Model][..]),
    ) {
        if let Some(pause) = pause(decide(&attempt, &told(class, wait), None, &policy)) {
            prop_assert!(pause >= wait);
            prop_assert!(pause - wait <= policy.first_delay_ms);
        }
    }

    #[test]
    fn success_cancel_and_timeout_are_never_repeated(attempt in any_attempt(), policy in any_policy()) {
        prop_assert_eq!(decide(&attempt, &Outcome::Succeeded, None, &policy), Decision::Finish);
        prop_assert_eq!(decide(&attempt, &Outcome::Cancelled, None, &policy), Decision::Finish);
        let late = Outcome::TimedOut { timeout_ms: 1 };
        let dead = Decision::DeadLetter { class: ErrorClass::Timeout };
        prop_assert_eq!(decide(&attempt, &late, None, &policy), dead);
    }
}

/// The pauses of a run whose every attempt ends like this, until it is given up.
fn history(run: u128, outcome: &Outcome, max_attempts: u32) -> (Vec<u64>, Decision) {
    let policy = RetryPolicy { max_attempts, ..RetryPolicy::default() };
    let mut pauses = Vec::new();
    let mut before = None;
    for number in 1.. {
        match decide(&attempt(run, number), outcome, before, &policy) {
            Decision::RetryAfter { delay_ms } => pauses.push(delay_ms),
            end @ (Decision::Finish | Decision::DeadLetter { .. }) => return (pauses, end),
        }
        before = Some(outcome);
    }
    unreachable!("attempts run out")
}

#[test]
fn each_class_has_its_own_history() {
    use FailureClass as Kind;
    let dead = |class| Decision::DeadLetter { class };
    // Half of 1 s, 2 s, 4 s, … up to a minute, and at most the other half more.
    let (pauses, end) = history(1, &failed(Kind::Lost), 9);
    assert_eq!(end, dead(ErrorClass::Transient));
    let doubled = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000];
    assert!(pauses.iter().zip(doubled).all(|(pause, most)| (most / 2..=most).contains(pause)), "{pauses:?}");
    assert_eq!(pauses.len(), doubled.len());
    let (pauses, end) = history(1, &failed(Kind::Overloaded), 3);
    assert_eq!((pauses.len(), end), (2, dead(ErrorClass::Overloaded)));
    // An hour, and then some time within a second.
    let (pauses, end) = history(1, &told(Kind::Quota, 3_600_000), 3);
    assert!(pauses.iter().all(|pause| (3_600_000..=3_601_000).contains(pause)), "{pauses:?}");
    assert_eq!((pauses.len(), end), (2, dead(ErrorClass::Quota)));
    let (pauses, _) = history(1, &failed(Kind::Quota), 3);
    assert!(pauses.iter().all(|pause| (30_000..=60_000).contains(pause)), "{pauses:?}");
    // Waiting longer makes no agent better.
    let (pauses, end) = history(1, &failed(Kind::Agent), 6);
    assert!(pauses.iter().all(|pause| (500..=1_000).contains(pause)), "{pauses:?}");
    assert_eq!((pauses.len(), end), (5, dead(ErrorClass::Agent)));
    for (kind, class) in [
        (Kind::Gate, ErrorClass::Gate),
        (Kind::Budget, ErrorClass::Budget),
        (Kind::OutOfMemory, ErrorClass::Budget),
        (Kind::Seal, ErrorClass::Seal),
        (Kind::Refused, ErrorClass::Config),
        (Kind::Auth, ErrorClass::Config),
    ] {
        assert_eq!(history(1, &failed(kind), 9), (vec![], dead(class)), "{kind:?}");
    }
    let late = Outcome::TimedOut { timeout_ms: 1 };
    assert_eq!(history(1, &late, 9), (vec![], dead(ErrorClass::Timeout)));
    assert_eq!(history(1, &Outcome::Cancelled, 9), (vec![], Decision::Finish));
}

#[test]
fn a_worker_that_crashes_twice_in_a_row_is_given_up_as_the_agents_doing() {
    let crash = failed(FailureClass::WorkerCrashed);
    let (pauses, end) = history(1, &crash, 2);
    assert_eq!((pauses.len(), end), (1, Decision::DeadLetter { class: ErrorClass::Agent }));
    let (_, once) = history(1, &crash, 1);
    assert_eq!(once, Decision::DeadLetter { class: ErrorClass::Transient });
}

#[test]
fn runs_that_failed_together_do_not_come_back_together() {
    let first = |run| history(run, &failed(FailureClass::Engine), 2).0[0];
    let pauses: std::collections::BTreeSet<u64> = (0..100).map(first).collect();
    assert!(pauses.len() > 50, "{pauses:?}");
    assert_eq!(first(7), first(7), "and always at the same time");
}
