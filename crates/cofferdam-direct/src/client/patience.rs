//! How often a request is repeated, and when.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use cofferdam_core::{ModelTrouble, TroubleKind};

/// How often a request is repeated, and when. What takes longer is the run's own affair: it tries again later, and holds
/// no connection meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How often a request is repeated.
    pub retries: u32,
    /// The wait before the first time; each one after is twice as long.
    pub first_wait: Duration,
    /// The longest wait. A server that asks for a longer one is not asked again.
    pub longest_wait: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            retries: 4,
            first_wait: Duration::from_millis(500),
            // As long as the broker lets a server make an agent wait.
            longest_wait: Duration::from_secs(20),
        }
    }
}

impl Patience {
    /// How long to wait before the request is repeated; `None` if it is not.
    pub(super) fn wait_after(&self, failures: u32, trouble: &ModelTrouble) -> Option<Duration> {
        let may_pass = match trouble.kind {
            TroubleKind::Quota | TroubleKind::Overloaded | TroubleKind::Unreachable | TroubleKind::Broken => {
                true
            }
            TroubleKind::Budget | TroubleKind::Auth | TroubleKind::Rejected => false,
        };
        if !may_pass || failures > self.retries {
            return None;
        }
        let asked_for = trouble.retry_after_ms.map(Duration::from_millis);
        if asked_for.is_some_and(|wait| wait > self.longest_wait) {
            return None;
        }
        let doubled = self.first_wait.saturating_mul(1 << (failures - 1).min(16)).min(self.longest_wait);
        // Whoever failed at the same moment is not to ask again at the same moment. Never before it was asked to.
        Some(doubled.mul_f64(0.5 + 0.5 * random()).max(asked_for.unwrap_or_default()))
    }
}

/// A number from 0 to 1. Each `RandomState` has keys of its own, the first of them from the system's random source.
fn random() -> f64 {
    let bits = u32::try_from(RandomState::new().hash_one(0) >> 32).unwrap_or_default();
    f64::from(bits) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(kind: TroubleKind, retry_after_ms: Option<u64>) -> ModelTrouble {
        ModelTrouble { kind, message: String::new(), status: None, retry_after_ms }
    }

    #[test]
    fn waits_grow_differ_and_end() {
        let patience = Patience::default();
        let overloaded = trouble(TroubleKind::Overloaded, None);
        for (failures, most) in [(1, 500), (2, 1000), (3, 2000), (4, 4000)] {
            let wait = patience.wait_after(failures, &overloaded).unwrap();
            assert!((most / 2..=most).contains(&(wait.as_millis() as u64)), "{failures}: {wait:?}");
        }
        assert_eq!(patience.wait_after(5, &overloaded), None);
        let waits: Vec<_> = (0..10).map(|_| patience.wait_after(1, &overloaded)).collect();
        assert!(waits.iter().any(|wait| *wait != waits[0]), "{waits:?}");
    }

    #[test]
    fn what_will_not_pass_is_not_repeated() {
        let patience = Patience::default();
        for kind in [TroubleKind::Budget, TroubleKind::Auth, TroubleKind::Rejected] {
            assert_eq!(patience.wait_after(1, &trouble(kind, Some(10))), None, "{kind:?}");
        }
    }

    #[test]
    fn a_server_that_asks_for_time_gets_it_or_is_left_alone() {
        let patience = Patience::default();
        let wait = |ms| patience.wait_after(1, &trouble(TroubleKind::Quota, Some(ms)));
        assert_eq!(wait(7_000), Some(Duration::from_secs(7)));
        assert_eq!(wait(20_001), None);
    }
}
