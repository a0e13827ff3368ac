//! Whether a run is tried again.

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// How often and when a run is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPolicy {
    /// 1 means that nothing is repeated.
    pub max_attempts: u32,
    /// The pause before the second attempt; it doubles with each further one.
    pub first_delay_ms: u64,
    /// The longest pause.
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
    DeadLetter,
}

/// Decides what follows attempt number `attempt` (counted from 1) that ended like this.
#[must_use]
pub fn decide(outcome: &Outcome, attempt: u32, policy: &RetryPolicy) -> Decision {
    match outcome {
        Outcome::Succeeded | Outcome::Cancelled => Decision::Finish,
        Outcome::Failed { class, retry_after_ms, .. }
            if class.is_retryable() && attempt < policy.max_attempts =>
        {
            // Coming back before the model's server said would only spend an attempt.
            let at_least = retry_after_ms.unwrap_or(0);
            Decision::RetryAfter { delay_ms: delay_ms(attempt, policy).max(at_least) }
        }
        Outcome::Failed { .. } | Outcome::TimedOut { .. } => Decision::DeadLetter,
    }
}

fn delay_ms(attempt: u32, policy: &RetryPolicy) -> u64 {
    let doublings = attempt.saturating_sub(1).min(32);
    policy.first_delay_ms.saturating_mul(1 << doublings).min(policy.max_delay_ms)
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
