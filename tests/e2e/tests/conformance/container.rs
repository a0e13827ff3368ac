//! What a container promises besides: somebody else may lay hands on it, and its watcher may die.

use std::time::{Duration, Instant};

use cofferdam_core::{ExitCause, Mount, MountAccess, Policy, SandboxExit};
use cofferdam_e2e::processes::{is_alive, kill_9, wait_until, with_role};
use cofferdam_sandbox::{Attachment, Sandbox};

use crate::conformance::stage::{PATIENCE, Stage, Talk, end_of};
use crate::{on_every_container, on_the_engine};

/// A child that leaves its parent, its group and its session.
const WITH_A_RUNAWAY: &str = "(setsid sleep 61 &) ; sleep 60";

on_the_engine! {
    async fn a_container_whose_watcher_was_killed_still_ends_at_its_deadline(stage: Stage) {
        let mut policy = stage.policy();
        policy.timeout_ms = 5_000;
        let (sandbox, talk) = stage.running(&policy, WITH_A_RUNAWAY).await;
        let tree = stage.processes();
        with_role(&stage.fixture.state(), "watcher").into_iter().for_each(kill_9);
        drop((sandbox, talk));
        let opened = stage.backend_after_a_restart().open(&stage.id()).await.unwrap();
        assert_eq!(end_of_container(&*opened).await.cause, ExitCause::Deadline);
        assert!(!tree.iter().any(|pid| is_alive(*pid)), "something of {tree:?} goes on");
        opened.destroy().await.unwrap();
    }

    async fn a_watcher_that_is_killed_is_replaced_while_somebody_waits(stage: Stage) {
        let (sandbox, _talk) = stage.running(&stage.policy(), "sleep 2; exit 4").await;
        let waiting = stage.backend_after_a_restart().open(&stage.id()).await.unwrap();
        let waiting = tokio::spawn(async move { waiting.wait().await.unwrap() });
        with_role(&stage.fixture.state(), "watcher").into_iter().for_each(kill_9);
        let ended = tokio::time::timeout(PATIENCE, waiting).await.expect("it ends").unwrap();
        // The worker's own status; that of the agent is in its last line.
        assert_eq!(ended.cause, ExitCause::Exited { code: 0 });
        sandbox.destroy().await.unwrap();
    }

    async fn an_attached_container_keeps_its_owner_when_its_watcher_is_killed(stage: Stage) {
        let sandbox = stage.create(&stage.policy(), Attachment::Attached).await;
        let mut talk = Talk::to(&*sandbox).await;
        stage.give_job(&mut talk, &*sandbox, &stage.policy(), WITH_A_RUNAWAY).await;
        talk.until("agent.started").await;
        let tree = stage.processes();
        with_role(&stage.fixture.state(), "watcher").into_iter().for_each(kill_9);
        let waited = tokio::time::timeout(Duration::from_secs(3), sandbox.wait()).await;
        assert!(waited.is_err(), "it goes on with its owner: {waited:?}");
        drop(sandbox);
        wait_until(PATIENCE, "the whole tree is gone", || !tree.iter().any(|pid| is_alive(*pid)));
        let opened = stage.backend.open(&stage.id()).await.unwrap();
        assert_eq!(end_of_container(&*opened).await.cause, ExitCause::OwnerGone);
        opened.destroy().await.unwrap();
    }

    async fn an_attached_container_without_owner_and_watcher_ends_when_it_is_opened(stage: Stage) {
        let sandbox = stage.create(&stage.policy(), Attachment::Attached).await;
        let tree = stage.processes();
        with_role(&stage.fixture.state(), "watcher").into_iter().for_each(kill_9);
        drop(sandbox);
        let opened = stage.backend_after_a_restart().open(&stage.id()).await.unwrap();
        assert_eq!(end_of_container(&*opened).await.cause, ExitCause::OwnerGone);
        assert!(!tree.iter().any(|pid| is_alive(*pid)), "something of {tree:?} goes on");
        opened.destroy().await.unwrap();
    }

    async fn what_an_engine_cannot_hold_is_refused_and_named(stage: Stage) {
        let refused = async |named: &str, change: &dyn Fn(&mut Policy)| {
            let mut policy = stage.policy();
            change(&mut policy);
            let refusal = stage.backend.validate(&policy).await.expect_err(named);
            assert!(refusal.problem.contains(named), "{named}: {refusal:?}");
            assert!(!refusal.remedy.is_empty(), "{refusal:?}");
        };
        refused("cofferdam-test/missing", &|policy| {
            policy.container.image = "cofferdam-test/missing".parse().unwrap();
        }).await;
        refused("no-such-runtime", &|policy| {
            policy.container.runtime = Some("no-such-runtime".parse().unwrap());
        }).await;
        refused("no-such-network", &|policy| {
            policy.network = cofferdam_core::Network::Open;
            policy.container.network = "no-such-network".parse().unwrap();
        }).await;
        for path in stage.engine_sockets() {
            for access in [MountAccess::Ro, MountAccess::Rw] {
                let named = path.display().to_string();
                let mount = Mount { path: path.clone(), access };
                refused(&named, &|policy| policy.mounts = vec![mount.clone()]).await;
            }
        }
        assert_eq!(stage.backend.validate(&stage.policy()).await, Ok(()));
    }
}

on_every_container! {
    async fn a_container_that_somebody_killed_says_so(stage: Stage) {
        is_ended_by(stage, &["kill"], ExitCause::Signaled { signal: 9 }).await;
    }

    async fn a_container_that_somebody_paused_is_ended_and_says_so(stage: Stage) {
        is_ended_by(stage, &["pause"], ExitCause::Paused).await;
    }

    async fn a_container_that_somebody_removed_says_so(stage: Stage) {
        is_ended_by(stage, &["rm", "--force"], ExitCause::Removed).await;
    }

    async fn a_paused_container_is_destroyed(stage: Stage) {
        let (sandbox, _talk) = stage.running(&stage.policy(), WITH_A_RUNAWAY).await;
        let tree = stage.processes();
        stage.by_hand(&["pause", &stage.container()]);
        sandbox.destroy().await.unwrap();
        wait_until(PATIENCE, "the whole tree is gone", || !tree.iter().any(|pid| is_alive(*pid)));
    }
}

/// Somebody does this to the container: its end is told, truly and soon, and nothing of it goes on.
async fn is_ended_by(stage: Stage, deed: &[&str], cause: ExitCause) {
    let (sandbox, mut talk) = stage.running(&stage.policy(), WITH_A_RUNAWAY).await;
    let tree = stage.processes();
    let container = stage.container();
    let deed: Vec<&str> = deed.iter().copied().chain([container.as_str()]).collect();
    stage.by_hand(&deed);
    let done = Instant::now();
    assert_eq!(end_of_container(&*sandbox).await.cause, cause);
    println!("{cause:?} was told after {:?}", done.elapsed());
    assert_eq!(end_of(&talk.rest().await), None, "that is no end that a worker tells");
    wait_until(PATIENCE, "the whole tree is gone", || !tree.iter().any(|pid| is_alive(*pid)));
    sandbox.destroy().await.expect("it is removed");
    sandbox.destroy().await.expect("it is removed");
}

async fn end_of_container(sandbox: &dyn Sandbox) -> SandboxExit {
    // Three seconds are promised; machines that run tests are busy.
    let ended = tokio::time::timeout(Duration::from_secs(10), sandbox.wait()).await;
    ended.expect("its end is noticed").expect("its end is on record")
}
