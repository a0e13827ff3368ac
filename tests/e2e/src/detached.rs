//! A queue and nodes that can be killed: how a service runs agents, without the service.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cofferdam_core::{
    Actor, ChosenPolicy, LimitsRule, Mount, MountAccess, NodeId, Policy, RunId, RunRequest, RunState, Source,
    Work,
};
use cofferdam_operations::Operations;
use cofferdam_runner::{Home, now_ms};
use cofferdam_store::{NodeRecord, Owner, RunRecord, Store};
use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::{Fixture, binary, test_binary};
use crate::marks::Marks;
use crate::processes::{kill_9, wait_until};

/// The record of runs, as somebody who accepts them has it.
pub struct Queue {
    runtime: tokio::runtime::Runtime,
    store: Store,
}

impl Queue {
    /// Opens the record in the fixture's state folder.
    ///
    /// # Panics
    /// If it cannot be opened.
    #[must_use]
    pub fn open(fixture: &Fixture) -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let home = Home::open(&fixture.state()).expect("a state folder");
        let store = runtime.block_on(Store::open_sqlite(&home.database())).expect("a database");
        Self { runtime, store }
    }

    /// Accepts a run of a shell script on the fixture's repository, for any node. `change` may ask for more.
    ///
    /// # Panics
    /// If it is not accepted.
    pub fn enqueue(
        &self,
        fixture: &Fixture,
        marks: &Marks,
        body: &str,
        change: impl FnOnce(&mut RunRequest),
    ) -> RunId {
        let mount = Mount { path: marks.folder().clone(), access: MountAccess::Rw };
        let policy = Policy { mounts: vec![mount], limits_rule: LimitsRule::BestEffort, ..Policy::default() };
        static RUNS: AtomicU64 = AtomicU64::new(1);
        let number = u128::from(std::process::id()) << 32 | u128::from(RUNS.fetch_add(1, Ordering::Relaxed));
        let mut request = RunRequest::new(
            RunId::new(now_ms(), number),
            Source::Local { path: fixture.repository().canonicalize().expect("a repository") },
            Work::Program { argv: vec!["sh".into(), "-c".into(), marks.script(body)] },
            policy,
        );
        change(&mut request);
        let operations = Operations::for_own_use(self.store.clone());
        let accepted = self.runtime.block_on(async {
            let judged = operations.judge_request(&Actor::LocalUser, request, ChosenPolicy::Unknown).await?;
            operations.accept(judged, None).await
        });
        accepted.expect("the run is accepted").run
    }

    /// What is on record of a run.
    ///
    /// # Panics
    /// If there is no such run.
    #[must_use]
    pub fn run(&self, run: &RunId) -> RunRecord {
        self.runtime.block_on(self.store.run(run)).expect("the run is on record")
    }

    /// What the nodes tell of themselves.
    ///
    /// # Panics
    /// If the record cannot be read.
    #[must_use]
    pub fn nodes(&self) -> Vec<NodeRecord> {
        self.runtime.block_on(self.store.nodes()).expect("the record can be read")
    }

    /// Takes a run that is under way for somebody else, as a node does that thinks the first one dead.
    ///
    /// # Panics
    /// If it is not under way.
    pub fn take(&self, run: &RunId, owner: &Owner) {
        let taken = self.runtime.block_on(async {
            let live = self.store.live_runs().await.expect("the record can be read");
            let live = live.into_iter().find(|live| live.attempt.run == *run).expect("the run is under way");
            self.store.adopt_for_recovery(run, live.token, owner, now_ms(), 30_000).await
        });
        assert!(taken.expect("the record can be written").is_some(), "the run is taken");
    }

    /// Asks for a run's end.
    ///
    /// # Panics
    /// If there is no such run.
    pub fn cancel(&self, run: &RunId) {
        let operations = Operations::for_own_use(self.store.clone());
        let asked = self.runtime.block_on(operations.cancel_run(&Actor::LocalUser, run));
        asked.expect("it can be asked for");
    }

    /// Waits for a run's final state.
    ///
    /// # Panics
    /// If it does not come.
    #[must_use]
    pub fn wait_for_end(&self, run: &RunId) -> RunState {
        self.wait_for_end_within(run, Duration::from_secs(30))
    }

    /// The same, for runs of real agents, which take their time.
    ///
    /// # Panics
    /// If it does not come.
    #[must_use]
    pub fn wait_for_end_within(&self, run: &RunId, within: Duration) -> RunState {
        let state = || self.run(run).state;
        wait_until(within, "the run ends", || state().is_final());
        state()
    }
}

/// A node's name.
#[must_use]
pub fn node_id(number: u128) -> NodeId {
    NodeId::new(1, number)
}

/// A process that executes detached runs. Dropping it kills it.
pub struct DetachedNode {
    child: Child,
}

impl DetachedNode {
    /// Starts it, with a failpoint armed if one is named.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn start(fixture: &Fixture, id: &NodeId, failpoint: Option<&str>) -> Self {
        let mut command = Command::new(test_binary("detached-node"));
        command.args([fixture.state().as_os_str(), id.as_str().as_ref(), binary().as_os_str(), "2".as_ref()]);
        command
            .env("HOME", fixture.home())
            .env("COFFERDAM_HOME", fixture.state())
            .envs(fixture.env())
            .env_remove("COFFERDAM_FAILPOINT")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        command.envs(failpoint.map(|name| ("COFFERDAM_FAILPOINT", name)));
        Self { child: command.spawn().expect("the node can be started") }
    }

    /// `kill -9`, and waits until it is gone.
    ///
    /// # Panics
    /// If it is gone already.
    pub fn kill(mut self) {
        kill_9(self.child.id());
        self.child.wait().expect("a child can be waited for");
    }

    /// Waits until a failpoint has killed it. False if it is still there after this time.
    ///
    /// # Panics
    /// If it has ended by itself.
    #[must_use]
    pub fn is_killed_within(&mut self, within: Duration) -> bool {
        let started = std::time::Instant::now();
        while started.elapsed() < within {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                assert_eq!(status.code(), None, "the node ended by itself: {status}");
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// Asks it to end, and waits until it has.
    ///
    /// # Panics
    /// If it does not end well.
    pub fn stop(mut self) {
        // Before it listens, the signal would end it as it ends anybody.
        let mut ready = [0; 1];
        self.child.stdout.take().expect("stdout was piped").read_exact(&mut ready).expect("it gets ready");
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a child's id is positive");
        kill_process(pid, Signal::TERM).expect("the node is there");
        let status = self.child.wait().expect("a child can be waited for");
        assert!(status.success(), "the node ended badly: {status}");
    }
}

impl Drop for DetachedNode {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
