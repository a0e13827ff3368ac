//! The supervisor of a container: a small process outside that holds what must be held even when nobody else lives: the wall
//! clock, the disk, and that an attached container ends with its owner. It counts what the kernel held against the container,
//! sees how it ends, and writes that down.
//!
//! How a container is looked at, asked and ended is its [`Driver`]'s: through an engine's interface, or by a runtime's command.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use cofferdam_core::{ExitCause, SandboxExit};
use tokio::io::unix::AsyncFd;

use super::watch::{Action, Watch, Woken};
use crate::folder::{Folder, Record};
use crate::linux::cgroup::{self, Hits};
use crate::linux::plan::CgroupPlan;
use crate::linux::{ProcessRecord, watch_descriptor};

/// How often the kernel's counters are read: they are gone with the container.
pub(crate) const COUNT: Duration = Duration::from_millis(100);

/// How a supervisor deals with one container.
pub(crate) trait Driver {
    /// When there is something to look at again.
    fn next_look(&self) -> Instant;

    /// Looks what has become of the container.
    async fn look(&mut self) -> Seen;

    /// Waits for what cannot wait for the next look. It is given up at any time, and begun again.
    async fn wait(&mut self) -> Told;

    /// Asks the worker to end its agent.
    async fn ask(&mut self);

    /// Kills the container.
    async fn kill(&mut self);

    /// Why it really ended, once it has: what we did ourselves, what somebody else did, or what became of the worker.
    fn conclude(&mut self, cause: ExitCause, hits: &mut Hits) -> ExitCause;

    /// What is left to do once its end is recorded.
    fn close(self) -> io::Result<()>;
}

/// What a look found.
pub(crate) enum Seen {
    /// Nothing new.
    AsBefore,
    /// That the container runs: its first process, where that is one of this kernel.
    Runs(Option<ProcessRecord>),
    /// That it has ended.
    Ended(ExitCause),
}

/// What there was that could not wait.
pub(crate) enum Told {
    /// That there is something to look at.
    Look,
    /// That somebody wants it to end.
    Kill,
    /// That it has ended.
    Ended(ExitCause),
}

/// Supervises one container.
pub(crate) struct Supervisor<D> {
    folder: Folder,
    driver: D,
    watch: Watch,
    owner: Owner,
    first: Option<First>,
    hits: Hits,
}

/// The container's first process, and the groups that hold it.
struct First {
    pid: i32,
    group: Option<CgroupPlan>,
    /// Readable when it has ended: a moment before the groups are removed with their counters. `None` once that was seen.
    death: Option<AsyncFd<OwnedFd>>,
}

impl<D: Driver> Supervisor<D> {
    /// For the container of this folder. One that is attached ends when our stdin does.
    pub(crate) fn new(folder: Folder, driver: D, watch: Watch, attached: bool) -> io::Result<Self> {
        Ok(Self { folder, driver, watch, owner: Owner::of(attached)?, first: None, hits: Hits::default() })
    }

    /// Supervises it until it has ended, and records how.
    pub(crate) async fn run(mut self) -> io::Result<()> {
        let cause = self.follow().await;
        let cause = self.watch.verdict().unwrap_or(cause);
        let cause = self.driver.conclude(cause, &mut self.hits);
        let Hits { oom_kills, pids_refused } = self.hits;
        let recorded = self.folder.write(Record::Exit, &SandboxExit { cause, oom_kills, pids_refused });
        let closed = self.driver.close();
        recorded.and(closed)
    }

    async fn follow(&mut self) -> ExitCause {
        let mut count_at = Instant::now();
        loop {
            if Instant::now() >= self.driver.next_look() {
                match self.driver.look().await {
                    Seen::AsBefore => {}
                    Seen::Runs(first) => self.meet(first),
                    Seen::Ended(cause) => return cause,
                }
            }
            if Instant::now() >= count_at {
                self.count();
                count_at = Instant::now() + COUNT;
            }
            let now = Instant::now();
            let look_in = self.driver.next_look().saturating_duration_since(now);
            let pause = self.watch.next_check(now).min(COUNT).min(look_in);
            let mut woken = Woken::default();
            tokio::select! {
                // In this order: what is counted is counted before the end is looked at.
                biased;
                () = died(&self.first) => {
                    self.count();
                    if let Some(first) = &mut self.first {
                        first.death = None;
                    }
                    continue;
                }
                told = self.driver.wait() => match told {
                    Told::Look => continue,
                    Told::Kill => woken.kill_requested = true,
                    Told::Ended(cause) => {
                        // The counters may be there for a moment longer.
                        self.count();
                        return cause;
                    }
                },
                () = self.owner.gone() => woken.owner_gone = true,
                () = tokio::time::sleep(pause) => {}
            }
            self.watch.set_ancestor(self.first.as_ref().map(|first| first.pid));
            match self.watch.decide(&woken, Instant::now()) {
                Action::Wait => {}
                Action::Ask => self.driver.ask().await,
                Action::Kill => self.driver.kill().await,
            }
        }
    }

    fn meet(&mut self, first: Option<ProcessRecord>) {
        if let (None, Some(process)) = (&self.first, first) {
            let pid = process.pid;
            // Without a descriptor its driver sees the end, only later.
            let death = process.watch().ok().flatten();
            self.first = Some(First { pid, group: cgroup::of_process(pid), death });
        }
    }

    /// Reads the counters of the kernel.
    fn count(&mut self) {
        if let Some(group) = self.first.as_ref().and_then(|first| first.group.as_ref()) {
            let now = cgroup::hits(group);
            self.hits.oom_kills = self.hits.oom_kills.max(now.oom_kills);
            self.hits.pids_refused = self.hits.pids_refused.max(now.pids_refused);
        }
    }
}

/// Resolves when the first process has ended; never if it is not known, or was seen to end.
async fn died(first: &Option<First>) {
    match first.as_ref().and_then(|first| first.death.as_ref()) {
        Some(process) => drop(process.readable().await),
        None => std::future::pending().await,
    }
}

/// The pipe whose end says that the owner is gone. Nobody writes to it.
struct Owner(Option<AsyncFd<OwnedFd>>);

impl Owner {
    fn of(attached: bool) -> io::Result<Self> {
        let pipe = attached.then(|| io::stdin().as_fd().try_clone_to_owned().and_then(watch_descriptor));
        pipe.transpose().map(Self)
    }

    /// Resolves once, when the pipe is closed.
    async fn gone(&mut self) {
        match &self.0 {
            Some(pipe) => {
                let _ = pipe.readable().await;
                self.0 = None;
            }
            None => std::future::pending().await,
        }
    }
}
