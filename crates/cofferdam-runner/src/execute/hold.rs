//! Whether an attempt is still this node's. This file never reads the clock.

use crate::lease_times::{GRACE_MS, LEASE_MS};

/// How long before anybody else may take the run its sandbox is ended: ending takes a moment, and clocks differ.
const MARGIN_MS: u64 = 5_000;

/// Whether an attempt is still this node's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It is, as far as is known.
    Ours,
    /// The record says that somebody else has it, or that it is over.
    Taken,
    /// The record could not be reached for so long that somebody else may have it any moment.
    Unknown,
}

/// When the lease ends, and what becomes of the attempt then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeaseClock {
    expires_at_ms: u64,
    is_shared: bool,
}

impl LeaseClock {
    /// A lease that was taken or renewed by something that was sent at this time.
    pub(super) fn renewed(sent_at_ms: u64, is_shared: bool) -> Self {
        Self { expires_at_ms: sent_at_ms.saturating_add(LEASE_MS), is_shared }
    }

    /// What a renewal that could not be sent means. A record that is not shared has nobody who would take the run: after
    /// a laptop has slept its lease has run out, and is renewed.
    pub(super) fn failed(self, now_ms: u64) -> Hold {
        let last_ms = self.expires_at_ms.saturating_add(GRACE_MS - MARGIN_MS);
        if self.is_shared && last_ms <= now_ms { Hold::Unknown } else { Hold::Ours }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_is_ended_before_anybody_else_may_take_its_run() {
        let clock = LeaseClock::renewed(1_000, true);
        let taken_at = 1_000 + LEASE_MS + GRACE_MS;
        assert_eq!(clock.failed(taken_at - MARGIN_MS - 1), Hold::Ours);
        assert_eq!(clock.failed(taken_at - MARGIN_MS), Hold::Unknown);
    }

    #[test]
    fn half_a_minute_without_the_record_costs_nothing() {
        assert_eq!(LeaseClock::renewed(0, true).failed(40_000), Hold::Ours);
    }

    #[test]
    fn where_nobody_would_take_the_run_it_stays_ours() {
        assert_eq!(LeaseClock::renewed(0, false).failed(u64::MAX), Hold::Ours);
    }
}
