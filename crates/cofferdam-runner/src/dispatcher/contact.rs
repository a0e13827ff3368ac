//! Whether the record can be reached, as far as a node knows. This file never reads the clock.

use crate::lease_times::GRACE_MS;

/// The pause after a first failure, which doubles.
const FIRST_PAUSE_MS: u64 = 200;
const LONGEST_PAUSE_MS: u64 = 5_000;

/// Whether the record can be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Contact {
    /// Without interruption since then.
    Since(u64),
    /// It cannot, and is tried again at this time.
    Broken { retry_at_ms: u64, pause_ms: u64 },
}

impl Contact {
    /// Something was read or written.
    pub(super) fn worked(&mut self, now_ms: u64) {
        if let Self::Broken { .. } = self {
            *self = Self::Since(now_ms);
        }
    }

    /// Something could not be. Returns how long to wait before the next try.
    pub(super) fn failed(&mut self, now_ms: u64) -> u64 {
        let pause_ms = match self {
            Self::Since(_) => FIRST_PAUSE_MS,
            Self::Broken { pause_ms, .. } => (*pause_ms * 2).min(LONGEST_PAUSE_MS),
        };
        *self = Self::Broken { retry_at_ms: now_ms.saturating_add(pause_ms), pause_ms };
        pause_ms
    }

    /// Whether it makes sense to try.
    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        match self {
            Self::Since(_) => true,
            Self::Broken { retry_at_ms, .. } => *retry_at_ms <= now_ms,
        }
    }

    /// Whether everybody else who can reach the record has had the time to renew.
    pub(super) fn is_steady(&self, now_ms: u64) -> bool {
        match self {
            Self::Since(since_ms) => since_ms.saturating_add(GRACE_MS) <= now_ms,
            Self::Broken { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contact_is_steady_only_after_the_grace_without_interruption() {
        let mut contact = Contact::Since(1_000);
        assert!(!contact.is_steady(1_000 + GRACE_MS - 1) && contact.is_steady(1_000 + GRACE_MS));
        contact.failed(40_000);
        assert!(!contact.is_steady(u64::MAX));
        contact.worked(50_000);
        assert!(!contact.is_steady(50_000 + GRACE_MS - 1) && contact.is_steady(50_000 + GRACE_MS));
        contact.worked(60_000);
        assert!(contact.is_steady(50_000 + GRACE_MS), "what works goes on since it began to");
    }

    #[test]
    fn tries_become_rarer_and_begin_anew_after_one_that_worked() {
        let mut contact = Contact::Since(0);
        let pauses: Vec<u64> = (0..7).map(|_| contact.failed(10_000)).collect();
        assert_eq!(pauses, [200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert!(!contact.is_due(14_999) && contact.is_due(15_000));
        contact.worked(15_000);
        assert!(contact.is_due(15_000));
        assert_eq!(contact.failed(15_000), 200);
    }
}
