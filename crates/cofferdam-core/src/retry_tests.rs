use proptest::prelude::*;

use super::*;
use crate::outcome::FailureClass;

fn any_policy() -> impl Strategy<Value = RetryPolicy> {
    (any::<u32>(), any::<u64>(), any::<u64>()).prop_map(|(max_attempts, first_delay_ms, max_delay_ms)| {
        RetryPolicy { max_attempts, first_delay_ms, max_delay_ms }
    })
}

fn any_class() -> impl Strategy<Value = FailureClass> {
    proptest::sample::select(&FailureClass::ALL[..])
}

fn pause(attempt: u32, policy: &RetryPolicy) -> Option<u64> {
    match decide(&Outcome::failed(FailureClass::Lost, "why"), attempt, policy) {
        Decision::RetryAfter { delay_ms } => Some(delay_ms),
        Decision::Finish | Decision::DeadLetter => None,
    }
}

proptest! {
    #[test]
    fn a_failure_is_repeated_exactly_if_its_class_allows_it_and_attempts_remain(
        class in any_class(), attempt in 1..=u32::MAX, policy in any_policy(),
    ) {
        let decision = decide(&Outcome::failed(class, "why"), attempt, &policy);
        let repeated = matches!(decision, Decision::RetryAfter { .. });
        prop_assert_eq!(repeated, class.is_retryable() && attempt < policy.max_attempts);
        prop_assert!(repeated || decision == Decision::DeadLetter);
    }

    #[test]
    fn the_pause_never_shrinks_and_is_capped(attempt in 1..200_u32, policy in any_policy()) {
        if let (Some(earlier), Some(later)) = (pause(attempt, &policy), pause(attempt + 1, &policy)) {
            prop_assert!(earlier <= later);
            prop_assert!(later <= policy.max_delay_ms);
        }
    }

    #[test]
    fn the_first_pause_is_the_configured_one(policy in any_policy()) {
        if let Some(first) = pause(1, &policy) {
            prop_assert_eq!(first, policy.first_delay_ms.min(policy.max_delay_ms));
        }
    }

    #[test]
    fn success_cancel_and_timeout_are_never_repeated(attempt in 1..=u32::MAX, policy in any_policy()) {
        prop_assert_eq!(decide(&Outcome::Succeeded, attempt, &policy), Decision::Finish);
        prop_assert_eq!(decide(&Outcome::Cancelled, attempt, &policy), Decision::Finish);
        let late = Outcome::TimedOut { timeout_ms: 1 };
        prop_assert_eq!(decide(&late, attempt, &policy), Decision::DeadLetter);
    }
}
