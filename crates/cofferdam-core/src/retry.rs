//! Whether a run is tried again, and when.

use serde::{Deserialize, Serialize};

use crate::error_class::{ErrorClass, RetryRule};
use crate::ids::AttemptRef;
use crate::outcome::Outcome;

/// How often and when a run is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// 1 means that nothing is repeated.
    pub max_attempts: u32,
    /// The pause before the second attempt; it doubles with each further one.
    pub first_delay_ms: u64,
    /// The longest pause, unless a server names a longer one.
    pub max_delay_ms: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 1, first_delay_ms: 1_000, max_delay_ms: 60_000 }
    }
}

/// What follows an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The run has its final state.
    Finish,
    /// It is queued again after this pause.
    RetryAfter {
        /// The pause.
        delay_ms: u64,
    },
    /// The run has its final state and is kept whole for a replay.
    DeadLetter {
        /// Whose fault it was.
        class: ErrorClass,
    },
}

/// Decides what follows an attempt that ended like this, after one that ended like `before`.
///
/// Every attempt counts, also one that a quota ended: a server that always names another hour must not keep a run
/// for ever.
#[must_use]
pub fn decide(
    attempt: &AttemptRef,
    outcome: &Outcome,
    before: Option<&Outcome>,
    policy: &RetryPolicy,
) -> Decision {
    let Some(class) = ErrorClass::of(outcome, before) else { return Decision::Finish };
    let dead = Decision::DeadLetter { class };
    let pause = match class.rule() {
        RetryRule::Over => return Decision::Finish,
        RetryRule::Never => return dead,
        RetryRule::Backoff => doubled_ms(attempt.number, policy),
        RetryRule::WhenTold => policy.max_delay_ms,
        RetryRule::Soon => doubled_ms(1, policy),
    };
    if attempt.number >= policy.max_attempts {
        return dead;
    }
    let delay_ms = match told_ms(outcome) {
        // Coming back before the server said would only spend an attempt. All who were told the same come back
        // over a moment and not at once.
        Some(told) => told.saturating_add(spread(attempt, doubled_ms(1, policy))),
        None => pause / 2 + spread(attempt, pause - pause / 2),
    };
    Decision::RetryAfter { delay_ms }
}

fn told_ms(outcome: &Outcome) -> Option<u64> {
    match outcome {
        Outcome::Failed { retry_after_ms, .. } => *retry_after_ms,
        Outcome::Succeeded | Outcome::Cancelled | Outcome::TimedOut { .. } => None,
    }
}

fn doubled_ms(attempt: u32, policy: &RetryPolicy) -> u64 {
    let doublings = attempt.saturating_sub(1).min(32);
    policy.first_delay_ms.saturating_mul(1 << doublings).min(policy.max_delay_ms)
}

/// A number from 0 to `most` that differs between runs and attempts and is always the same for one: runs that failed
/// together do not come back together, and a test can say when.
fn spread(attempt: &AttemptRef, most: u64) -> u64 {
    // FNV-1a takes the bytes in; its upper bits differ too little for ids that differ at their end, so they are
    // mixed as SplitMix64 does it.
    let bytes = attempt.run.as_str().bytes().chain(attempt.number.to_le_bytes());
    let mut mixed = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    let scaled = (u128::from(mixed) * (u128::from(most) + 1)) >> 64;
    u64::try_from(scaled).unwrap_or(most)
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
