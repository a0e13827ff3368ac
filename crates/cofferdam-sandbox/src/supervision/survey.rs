//! Looks, again and again, at what a sandbox uses. In a thread of its own: neither the clock nor a kill waits for it.
//!
//! How much there is to look at is the agent's choice. The attack: some hundred processes with ten thousands of mappings each
//! of a file at a deep path, so that the kernel writes gigabytes of text about them. So a look may cost so much and no more.
//! A sandbox that could not be looked at several times in a row may hide any amount, and counts as over its limit.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use cofferdam_core::LimitHit;
use rustix::event::{EventfdFlags, eventfd};

/// How long one look at processes may take. It takes some milliseconds.
const LONGEST: Duration = Duration::from_secs(5);
/// How much of what the kernel writes about processes is read in one look. A large program has a megabyte of mappings.
const MOST_BYTES: u64 = 256 << 20;
/// How many threads are looked at.
const MOST_THREADS: usize = 50_000;
/// How many files without a name are counted, which are what a look keeps in memory.
const MOST_FILES: usize = 500_000;
/// How many looks in a row may stay unfinished: one may be late on a machine that is busy.
const MOST_UNFINISHED: u32 = 3;
/// A look that has not come back by then hangs in the kernel.
const HANGING: Duration = Duration::from_secs(90);

/// What is left of what one look may cost.
#[derive(Debug)]
pub(super) struct Budget {
    until: Instant,
    bytes: u64,
    threads: usize,
    files: usize,
}

/// A look was given up because it would have cost too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unfinished;

impl Budget {
    /// The budget of one look that begins now.
    pub(super) fn of_a_look() -> Self {
        Self { until: Instant::now() + LONGEST, bytes: MOST_BYTES, threads: MOST_THREADS, files: MOST_FILES }
    }

    /// Something is looked at that costs nothing but time.
    pub(super) fn step(&self) -> Result<(), Unfinished> {
        if Instant::now() < self.until { Ok(()) } else { Err(Unfinished) }
    }

    /// So much was read.
    pub(super) fn read(&mut self, bytes: usize) -> Result<(), Unfinished> {
        self.bytes = self.bytes.checked_sub(bytes as u64).ok_or(Unfinished)?;
        self.step()
    }

    /// So many threads are looked at.
    pub(super) fn threads(&mut self, count: usize) -> Result<(), Unfinished> {
        self.threads = self.threads.checked_sub(count).ok_or(Unfinished)?;
        self.step()
    }

    /// One more file is kept in memory.
    pub(super) fn file(&mut self) -> Result<(), Unfinished> {
        self.files = self.files.checked_sub(1).ok_or(Unfinished)?;
        Ok(())
    }
}

/// What one look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looked {
    Within,
    Over,
    /// No more than this was found, and not everything was looked at.
    Unfinished,
}

impl Looked {
    /// From what was counted and whether that is all.
    pub(super) fn of(used_bytes: u64, limit_bytes: u64, finished: Result<(), Unfinished>) -> Self {
        match finished {
            _ if used_bytes > limit_bytes => Self::Over,
            Ok(()) => Self::Within,
            Err(Unfinished) => Self::Unfinished,
        }
    }
}

/// What is looked at, and how often.
pub(super) struct Subject {
    /// What the thread is called.
    pub(super) name: &'static str,
    /// What it means if too much is used.
    pub(super) over: LimitHit,
    /// What it means if nobody can tell.
    pub(super) unmeasured: LimitHit,
    /// The pause between two looks is ten times as long as a look, within these.
    pub(super) shortest: Duration,
    pub(super) longest: Duration,
}

/// One kind of look, in a thread of its own. The thread ends with this or with the process.
pub(super) struct Survey {
    shared: Arc<Shared>,
    unmeasured: LimitHit,
    _end: mpsc::Sender<()>,
}

struct Shared {
    /// The ancestor of whatever the agent starts; 0 until it is known.
    ancestor: AtomicI32,
    state: Mutex<State>,
    news: News,
}

#[derive(Default)]
struct State {
    hit: Option<LimitHit>,
    looking_since: Option<Instant>,
}

impl Survey {
    /// Starts to look with `look`, which is given the ancestor of whatever the agent starts.
    pub(super) fn start(
        subject: Subject,
        news: News,
        look: impl FnMut(Option<i32>) -> Looked + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared { ancestor: AtomicI32::new(0), state: Mutex::default(), news });
        let (end, ended) = mpsc::channel();
        let (own, unmeasured) = (Arc::clone(&shared), subject.unmeasured);
        thread::Builder::new()
            .name(subject.name.to_owned())
            .spawn(move || own.look_until(&ended, &subject, look))?;
        Ok(Self { shared, unmeasured, _end: end })
    }

    /// Says where to look.
    pub(super) fn set_ancestor(&self, ancestor: Option<i32>) {
        self.shared.ancestor.store(ancestor.unwrap_or(0), Ordering::Relaxed);
    }

    /// Which limit is broken, if one is known to be. Never waits.
    pub(super) fn hit(&self, now: Instant) -> Option<LimitHit> {
        let state = self.shared.state();
        let hangs = state.looking_since.is_some_and(|since| now.saturating_duration_since(since) >= HANGING);
        state.hit.or_else(|| hangs.then_some(self.unmeasured))
    }
}

impl Shared {
    /// Held for as long as it takes to read or write it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn look_until(
        &self,
        ended: &mpsc::Receiver<()>,
        subject: &Subject,
        mut look: impl FnMut(Option<i32>) -> Looked,
    ) {
        let (mut pause, mut unfinished) = (subject.shortest, 0);
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(pause) {
            let began = Instant::now();
            self.state().looking_since = Some(began);
            let ancestor = Some(self.ancestor.load(Ordering::Relaxed)).filter(|pid| *pid > 0);
            let looked = look(ancestor);
            unfinished = if looked == Looked::Unfinished { unfinished + 1 } else { 0 };
            let hit = match looked {
                Looked::Over => Some(subject.over),
                Looked::Unfinished if unfinished >= MOST_UNFINISHED => Some(subject.unmeasured),
                Looked::Within | Looked::Unfinished => None,
            };
            *self.state() = State { hit, looking_since: None };
            if hit.is_some() {
                self.news.tell();
                return;
            }
            pause = (began.elapsed() * 10).clamp(subject.shortest, subject.longest);
        }
    }
}

/// Readable once a survey has found something.
#[derive(Clone)]
pub(super) struct News(Arc<OwnedFd>);

impl News {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    fn tell(&self) {
        // Full only if it has been told already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

impl AsFd for News {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    fn survey(look: impl FnMut(Option<i32>) -> Looked + Send + 'static) -> (Survey, News) {
        let news = News::new().unwrap();
        let subject = Subject {
            name: "test",
            over: LimitHit::Disk,
            unmeasured: LimitHit::DiskUnmeasured,
            shortest: Duration::from_millis(1),
            longest: Duration::from_millis(1),
        };
        (Survey::start(subject, news.clone(), look).unwrap(), news)
    }

    fn wait_for(news: &News) {
        poll(&mut [PollFd::new(news, PollFlags::IN)], None).unwrap();
    }

    #[test]
    fn what_is_over_its_limit_is_told() {
        let (survey, news) =
            survey(|ancestor| if ancestor == Some(7) { Looked::Over } else { Looked::Within });
        assert_eq!(survey.hit(Instant::now()), None);
        survey.set_ancestor(Some(7));
        wait_for(&news);
        assert_eq!(survey.hit(Instant::now()), Some(LimitHit::Disk));
    }

    #[test]
    fn what_could_not_be_looked_at_several_times_in_a_row_counts_as_over() {
        let mut looks = [Looked::Unfinished, Looked::Unfinished, Looked::Within].into_iter();
        let (told, heard) = mpsc::channel();
        let (survey, news) = survey(move |_| {
            let _ = told.send(());
            looks.next().unwrap_or(Looked::Unfinished)
        });
        wait_for(&news);
        assert_eq!(survey.hit(Instant::now()), Some(LimitHit::DiskUnmeasured));
        // Three in a row, and not the two before one that was finished.
        assert_eq!(heard.try_iter().count(), 6);
    }

    #[test]
    fn nobody_waits_for_a_look_and_one_that_hangs_counts_as_over() {
        let (_go_on, wait) = mpsc::channel::<()>();
        let (began, beginning) = mpsc::channel();
        let (survey, _news) = survey(move |_| {
            let _ = began.send(());
            let _ = wait.recv();
            Looked::Within
        });
        beginning.recv().unwrap();
        let now = Instant::now();
        assert_eq!(survey.hit(now), None);
        assert_eq!(survey.hit(now + HANGING), Some(LimitHit::DiskUnmeasured));
    }

    #[test]
    fn a_budget_ends_with_whatever_is_used_up_first() {
        let mut budget = Budget::of_a_look();
        assert_eq!(budget.read(1 << 20), Ok(()));
        assert_eq!(budget.read(1 << 30), Err(Unfinished));
        assert_eq!(budget.threads(MOST_THREADS), Ok(()));
        assert_eq!(budget.threads(1), Err(Unfinished));
        budget.until = Instant::now();
        assert_eq!(budget.step(), Err(Unfinished));
    }
}
