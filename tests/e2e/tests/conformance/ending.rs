//! Exit statuses, signals, limits, the wall clock, and who may end a sandbox.

use std::time::Duration;

use cofferdam_core::{AgentEnd, ExitCause, LimitHit, ToWorker};
use cofferdam_e2e::processes::{is_alive, wait_until};
use cofferdam_sandbox::Attachment;

use crate::conformance::stage::{Talk, end_of, texts};
use crate::on_every_backend;

const SOON: Duration = Duration::from_secs(3);
/// A child that leaves its parent, its group and its session.
const WITH_A_RUNAWAY: &str = "(setsid sleep 61 &) ; sleep 60";

on_every_backend! {
    async fn an_exit_status_is_told_as_it_was(stage: Stage) {
        let (sandbox, mut talk) = stage.running(&stage.policy(), "exit 7").await;
        assert_eq!(end_of(&talk.rest().await), Some(AgentEnd::Exited { code: 7 }));
        assert_eq!(sandbox.wait().await.unwrap().cause, ExitCause::Exited { code: 0 });
        sandbox.destroy().await.unwrap();
    }

    async fn a_signal_is_told_as_it_was(stage: Stage) {
        let (sandbox, mut talk) = stage.running(&stage.policy(), "kill -9 $$").await;
        assert_eq!(end_of(&talk.rest().await), Some(AgentEnd::Signaled { signal: 9 }));
        sandbox.destroy().await.unwrap();
    }

    async fn a_cancel_ends_the_agent_and_says_so(stage: Stage) {
        let (sandbox, mut talk) = stage.running(&stage.policy(), WITH_A_RUNAWAY).await;
        talk.send(&ToWorker::Cancel { grace_ms: 100 }).await;
        assert_eq!(end_of(&talk.rest().await), Some(AgentEnd::Cancelled));
        sandbox.destroy().await.unwrap();
    }

    async fn killing_a_sandbox_ends_its_whole_tree(stage: Stage) {
        let (sandbox, mut talk) = stage.running(&stage.policy(), WITH_A_RUNAWAY).await;
        let tree = stage.processes();
        // By name, from another process, as a service does after a restart.
        let other = stage.backend_after_a_restart().open(sandbox.id()).await.unwrap();
        other.kill().await.unwrap();
        assert_eq!(end_of(&talk.rest().await), None, "a kill is no end that a worker tells");
        assert_eq!(sandbox.wait().await.unwrap().cause, ExitCause::Killed);
        assert!(!tree.iter().any(|pid| is_alive(*pid)), "something of {tree:?} goes on");
        sandbox.destroy().await.unwrap();
    }

    async fn the_wall_clock_ends_a_sandbox_that_nobody_watches(stage: Stage) {
        let mut policy = stage.policy();
        policy.timeout_ms = 1_500;
        let (sandbox, talk) = stage.running(&policy, WITH_A_RUNAWAY).await;
        drop(talk);
        let ended = tokio::time::timeout(Duration::from_secs(10), sandbox.wait()).await;
        assert_eq!(ended.expect("the time is up").unwrap().cause, ExitCause::Deadline);
        sandbox.destroy().await.unwrap();
    }

    async fn writing_too_much_ends_a_sandbox(stage: Stage) {
        let mut policy = stage.policy();
        policy.limits.workspace_bytes = 4 << 20;
        // In many files, since one that is too large may be refused at once.
        let script = "i=0; while :; do head -c 1000000 /dev/zero > f$i; i=$((i+1)); sleep 0.05; done";
        let (sandbox, _talk) = stage.running(&policy, script).await;
        let ended = tokio::time::timeout(Duration::from_secs(10), sandbox.wait()).await;
        assert_eq!(ended.expect("it is noticed").unwrap().cause, ExitCause::Limit { hit: LimitHit::Disk });
        sandbox.destroy().await.unwrap();
    }

    async fn needing_too_much_memory_is_told_where_memory_is_limited(stage: Stage) {
        if !stage.kind.mode.is_sandboxed() {
            return;
        }
        let mut policy = stage.policy();
        policy.limits.memory_bytes = 64 << 20;
        let (sandbox, _talk) = stage.running(&policy, "head -c 500m /dev/zero | tail -c 400m; sleep 5").await;
        let ended = tokio::time::timeout(Duration::from_secs(15), sandbox.wait()).await;
        let exit = ended.expect("it is noticed").unwrap();
        let watched = exit.cause == ExitCause::Limit { hit: LimitHit::Memory };
        assert!(watched || exit.oom_kills > 0, "{exit:?}");
        sandbox.destroy().await.unwrap();
    }

    async fn needing_too_many_processes_is_refused_where_they_are_limited(stage: Stage) {
        if !stage.kind.mode.is_sandboxed() {
            return;
        }
        let mut policy = stage.policy();
        policy.limits.pids = 32;
        let script = "i=0; while [ $i -lt 200 ]; do sleep 60 & i=$((i+1)); done; echo all started";
        let (sandbox, mut talk) = stage.running(&policy, script).await;
        let seen = talk.rest().await;
        assert_eq!(texts(&seen), [""; 0], "nobody may start that many");
        assert!(matches!(end_of(&seen), Some(AgentEnd::Exited { code: 1.. })), "{:?}", end_of(&seen));
        let exit = sandbox.wait().await.unwrap();
        // Elsewhere the kernel counts only where a control group was to be had.
        assert!(exit.pids_refused > 0 || !stage.kind.mode.is_container(), "{exit:?}");
        sandbox.destroy().await.unwrap();
    }

    async fn an_attached_sandbox_ends_with_its_maker(stage: Stage) {
        let sandbox = stage.create(&stage.policy(), Attachment::Attached).await;
        let mut talk = Talk::to(&*sandbox).await;
        stage.give_job(&mut talk, &*sandbox, &stage.policy(), WITH_A_RUNAWAY).await;
        talk.until("agent.started").await;
        let tree = stage.processes();
        let id = sandbox.id().clone();
        drop(sandbox);
        wait_until(SOON, "the whole tree is gone", || !tree.iter().any(|pid| is_alive(*pid)));
        let opened = stage.backend.open(&id).await.unwrap();
        assert_eq!(opened.wait().await.unwrap().cause, ExitCause::OwnerGone);
        opened.destroy().await.unwrap();
    }

    async fn a_detached_sandbox_goes_on_without_its_maker(stage: Stage) {
        let (sandbox, talk) = stage.running(&stage.policy(), "sleep 0.5; exit 5").await;
        let id = sandbox.id().clone();
        drop((sandbox, talk));
        let opened = stage.backend.open(&id).await.unwrap();
        let seen = Talk::to(&*opened).await.rest().await;
        assert_eq!(end_of(&seen), Some(AgentEnd::Exited { code: 5 }));
        opened.destroy().await.unwrap();
    }
}
