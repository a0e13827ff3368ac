//! When a sandbox is to end, decided from the clock and from what was measured.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use cofferdam_core::{ExitCause, LimitHit};

use super::disk::DiskWatch;
use super::{Woken, processes, unnamed};

/// How often memory is summed up where no cgroup holds it.
const MEMORY_INTERVAL: Duration = Duration::from_millis(200);
/// How long a worker has, beyond the agent's grace, to say how the agent ended.
const LAST_WORDS: Duration = Duration::from_millis(700);

/// What the shim is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing.
    Wait,
    /// Ask the worker to end the agent.
    Ask,
    /// Kill the sandbox.
    Kill,
}

/// Watches over one sandbox.
pub(crate) struct Watch {
    deadline: Instant,
    grace: Duration,
    disk: DiskWatch,
    memory: Option<MemoryWatch>,
    ending: Option<Ending>,
}

struct MemoryWatch {
    limit_bytes: u64,
    next: Instant,
}

/// Why and when the sandbox is killed if it does not end by itself.
#[derive(Clone, Copy)]
struct Ending {
    cause: ExitCause,
    kill_at: Instant,
}

/// What is watched, and for how long.
pub(crate) struct WatchPlan {
    /// How much time is left.
    pub(crate) timeout: Duration,
    /// How long the agent has to end when it is asked to.
    pub(crate) grace: Duration,
    /// Folders that the agent writes.
    pub(crate) watched: Vec<PathBuf>,
    /// How much may be in them.
    pub(crate) most_bytes: u64,
    /// Memory, where nobody else holds it.
    pub(crate) memory_bytes: Option<u64>,
}

impl Watch {
    pub(crate) fn new(plan: WatchPlan, now: Instant) -> Self {
        let memory =
            plan.memory_bytes.map(|limit_bytes| MemoryWatch { limit_bytes, next: now + MEMORY_INTERVAL });
        Self {
            // A timeout beyond what the clock can tell is as good as none; a year is such a one.
            deadline: now + plan.timeout.min(Duration::from_secs(365 * 24 * 3600)),
            grace: plan.grace,
            disk: DiskWatch::new(plan.watched, plan.most_bytes, now),
            memory,
            ending: None,
        }
    }

    /// How long nothing needs to be looked at.
    pub(crate) fn next_check(&self, now: Instant) -> Duration {
        let mut next = self.ending.map_or(self.deadline, |ending| ending.kill_at);
        next = next.min(self.disk.next_check());
        if let Some(memory) = &self.memory {
            next = next.min(memory.next);
        }
        next.saturating_duration_since(now)
    }

    /// Why the sandbox was ended, if it was the shim that ended it; or which limit it had broken by then.
    pub(crate) fn verdict(&self) -> Option<ExitCause> {
        let over = || self.disk.is_over_at_the_end().then_some(ExitCause::Limit { hit: LimitHit::Disk });
        self.ending.map(|ending| ending.cause).or_else(over)
    }

    /// What to do now. `child` is the ancestor of whatever the agent starts, once that is known.
    pub(crate) fn decide(&mut self, woken: &Woken, now: Instant, child: Option<i32>) -> Action {
        if let Some(ending) = self.ending {
            let kill = now >= ending.kill_at || woken.kill_requested || woken.owner_gone;
            return if kill { Action::Kill } else { Action::Wait };
        }
        let cause = if woken.owner_gone {
            ExitCause::OwnerGone
        } else if woken.kill_requested {
            ExitCause::Killed
        } else if self.disk.is_over(now, child) {
            ExitCause::Limit { hit: LimitHit::Disk }
        } else if self.memory_is_over(now, child) {
            ExitCause::Limit { hit: LimitHit::Memory }
        } else if now >= self.deadline {
            self.ending = Some(Ending { cause: ExitCause::Deadline, kill_at: now + self.grace + LAST_WORDS });
            return Action::Ask;
        } else {
            return Action::Wait;
        };
        self.ending = Some(Ending { cause, kill_at: now });
        Action::Kill
    }

    fn memory_is_over(&mut self, now: Instant, child: Option<i32>) -> bool {
        let Some(memory) = &mut self.memory else { return false };
        if now < memory.next {
            return false;
        }
        memory.next = now + MEMORY_INTERVAL;
        let used = |child| processes::resident_bytes(child).saturating_add(unnamed::memory_bytes(child));
        child.map_or(0, used) > memory.limit_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(now: Instant) -> Watch {
        let plan = WatchPlan {
            timeout: Duration::from_secs(1),
            grace: Duration::from_millis(500),
            watched: Vec::new(),
            most_bytes: 1 << 40,
            memory_bytes: Some(u64::MAX),
        };
        Watch::new(plan, now)
    }

    #[test]
    fn at_the_deadline_the_worker_is_asked_and_after_the_grace_killed() {
        let start = Instant::now();
        let mut watch = watch(start);
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(watch.decide(&Woken::default(), at(999), Some(1)), Action::Wait);
        assert_eq!(watch.decide(&Woken::default(), at(1_000), Some(1)), Action::Ask);
        assert_eq!(watch.decide(&Woken::default(), at(1_400), Some(1)), Action::Wait);
        assert_eq!(watch.decide(&Woken::default(), at(2_200), Some(1)), Action::Kill);
        assert_eq!(watch.verdict(), Some(ExitCause::Deadline));
    }

    #[test]
    fn an_owner_that_is_gone_ends_an_attached_sandbox_at_once() {
        let start = Instant::now();
        let mut watch = watch(start);
        let woken = Woken { owner_gone: true, ..Woken::default() };
        assert_eq!(watch.decide(&woken, start, Some(1)), Action::Kill);
        assert_eq!(watch.verdict(), Some(ExitCause::OwnerGone));
    }
}
