//! When a sandbox is to end, decided from the clock and from what was measured.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cofferdam_core::{ExitCause, LimitHit};

use super::disk::Disk;
use super::memory;
use super::survey::{News, Subject, Survey};

/// How often is looked at what is written: a limit must be noticed soon even in a tree that takes long to sum up.
const DISK_INTERVAL: (Duration, Duration) = (Duration::from_millis(250), Duration::from_millis(1_500));
/// How often memory is summed up where no cgroup holds it.
const MEMORY_INTERVAL: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(1));
/// How often is looked whether a survey hangs.
const SURVEY_INTERVAL: Duration = Duration::from_secs(5);
/// How often a sandbox is killed that has not ended.
const KILL_INTERVAL: Duration = Duration::from_millis(100);
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

/// What happened while a supervisor waited.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Woken {
    pub(crate) child_ended: bool,
    pub(crate) kill_requested: bool,
    pub(crate) owner_gone: bool,
}

/// Watches over one sandbox.
pub(crate) struct Watch {
    deadline: Instant,
    grace: Duration,
    disk: Disk,
    surveys: Vec<Survey>,
    news: News,
    ending: Option<Ending>,
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
    /// Begins to watch.
    ///
    /// # Errors
    /// If no thread can be started for the surveys.
    pub(crate) fn start(plan: WatchPlan, now: Instant) -> io::Result<Self> {
        let (news, disk) = (News::new()?, Disk { folders: plan.watched, limit_bytes: plan.most_bytes });
        let mut surveys = vec![survey_disk(disk.clone(), &news)?];
        if let Some(limit_bytes) = plan.memory_bytes {
            surveys.push(survey_memory(limit_bytes, &news)?);
        }
        // A timeout beyond what the clock can tell is as good as none; a year is such a one.
        let deadline = now + plan.timeout.min(Duration::from_secs(365 * 24 * 3600));
        Ok(Self { deadline, grace: plan.grace, disk, surveys, news, ending: None })
    }

    /// Readable when there is something to decide before [`Self::next_check`]; nothing once the sandbox is to end.
    pub(crate) fn news(&self) -> Option<BorrowedFd<'_>> {
        self.ending.is_none().then(|| self.news.as_fd())
    }

    /// How long nothing needs to be looked at.
    pub(crate) fn next_check(&self, now: Instant) -> Duration {
        match self.ending {
            // What was killed and is still there takes its time to die.
            Some(ending) if now >= ending.kill_at => KILL_INTERVAL,
            Some(ending) => ending.kill_at.saturating_duration_since(now),
            None => self.deadline.saturating_duration_since(now).min(SURVEY_INTERVAL),
        }
    }

    /// Why the sandbox was ended, if it was the shim that ended it; or which limit it had broken by then.
    pub(crate) fn verdict(&self) -> Option<ExitCause> {
        let over = || self.disk.look_at_the_end().map(|hit| ExitCause::Limit { hit });
        self.ending.map(|ending| ending.cause).or_else(over)
    }

    /// Says which process is the ancestor of whatever the agent starts, once that is known.
    pub(crate) fn set_ancestor(&self, ancestor: Option<i32>) {
        self.surveys.iter().for_each(|survey| survey.set_ancestor(ancestor));
    }

    /// What to do now.
    pub(crate) fn decide(&mut self, woken: &Woken, now: Instant) -> Action {
        if let Some(ending) = self.ending {
            let kill = now >= ending.kill_at || woken.kill_requested || woken.owner_gone;
            return if kill { Action::Kill } else { Action::Wait };
        }
        let cause = if woken.owner_gone {
            ExitCause::OwnerGone
        } else if woken.kill_requested {
            ExitCause::Killed
        } else if let Some(hit) = self.surveys.iter().find_map(|survey| survey.hit(now)) {
            ExitCause::Limit { hit }
        } else if now >= self.deadline {
            self.ending = Some(Ending { cause: ExitCause::Deadline, kill_at: now + self.grace + LAST_WORDS });
            return Action::Ask;
        } else {
            return Action::Wait;
        };
        self.ending = Some(Ending { cause, kill_at: now });
        Action::Kill
    }
}

fn survey_disk(disk: Disk, news: &News) -> io::Result<Survey> {
    let (shortest, longest) = DISK_INTERVAL;
    let (over, unmeasured) = (LimitHit::Disk, LimitHit::DiskUnmeasured);
    let subject = Subject { name: "disk", over, unmeasured, shortest, longest };
    Survey::start(subject, news.clone(), move |ancestor| disk.look(ancestor))
}

fn survey_memory(limit_bytes: u64, news: &News) -> io::Result<Survey> {
    let (shortest, longest) = MEMORY_INTERVAL;
    let (over, unmeasured) = (LimitHit::Memory, LimitHit::MemoryUnmeasured);
    let subject = Subject { name: "memory", over, unmeasured, shortest, longest };
    Survey::start(subject, news.clone(), move |ancestor| memory::look(limit_bytes, ancestor))
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
        Watch::start(plan, now).unwrap()
    }

    #[test]
    fn at_the_deadline_the_worker_is_asked_and_after_the_grace_killed() {
        let start = Instant::now();
        let mut watch = watch(start);
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(watch.decide(&Woken::default(), at(999)), Action::Wait);
        assert_eq!(watch.decide(&Woken::default(), at(1_000)), Action::Ask);
        assert_eq!(watch.decide(&Woken::default(), at(1_400)), Action::Wait);
        assert_eq!(watch.decide(&Woken::default(), at(2_200)), Action::Kill);
        assert_eq!(watch.verdict(), Some(ExitCause::Deadline));
    }

    #[test]
    fn an_owner_that_is_gone_ends_an_attached_sandbox_at_once() {
        let start = Instant::now();
        let mut watch = watch(start);
        let woken = Woken { owner_gone: true, ..Woken::default() };
        assert_eq!(watch.decide(&woken, start), Action::Kill);
        assert_eq!(watch.verdict(), Some(ExitCause::OwnerGone));
    }
}
