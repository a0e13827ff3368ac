//! Making, attaching, opening, listing, destroying, refusing.

use cofferdam_core::{
    AgentEnd, ExitCause, Mode, Mount, MountAccess, Network, Policy, WorkspaceAccess, WorkspaceSeal, inside,
};
use cofferdam_e2e::node_id;
use cofferdam_sandbox::{Attachment, Changes, Listed, OpenError, Workspace};

use crate::conformance::stage::{Talk, end_of, measured, texts};
use crate::on_every_backend;

const ONE_TWO: &str = "echo one; sleep 0.5; echo two";

on_every_backend! {
    async fn everybody_who_attaches_reads_from_the_beginning(stage: Stage) {
        let (sandbox, mut first) = stage.running(&stage.policy(), ONE_TWO).await;
        first.until("agent.message").await;
        drop(first);
        let mut second = Talk::to(&*sandbox).await;
        // A host that does not know whether its job arrived repeats it.
        stage.give_job(&mut second, &*sandbox, &stage.policy(), ONE_TWO).await;
        let seen = second.rest().await;
        assert_eq!(texts(&seen), ["one", "two"]);
        assert_eq!(seen.iter().map(|line| line.seq).collect::<Vec<_>>(), (1..=seen.len() as u64).collect::<Vec<_>>());
        assert_eq!(Talk::to(&*sandbox).await.rest().await, seen, "also after the end");
        sandbox.destroy().await.unwrap();
    }

    async fn a_sandbox_is_opened_after_a_restart(stage: Stage) {
        let (made, talk) = stage.running(&stage.policy(), ONE_TWO).await;
        let id = made.id().clone();
        drop((made, talk));
        let backend = stage.backend_after_a_restart();
        let listed = Listed { id: id.clone(), node: Some(node_id(1)) };
        assert_eq!(backend.list().await.unwrap(), [listed]);
        let sandbox = backend.open(&id).await.unwrap();
        let seen = Talk::to(&*sandbox).await.rest().await;
        assert_eq!((texts(&seen), end_of(&seen)), (vec!["one", "two"], Some(AgentEnd::Exited { code: 0 })));
        assert_eq!(sandbox.wait().await.unwrap().cause, ExitCause::Exited { code: 0 });
        sandbox.measure(&measured(&seen)).await.unwrap();
        sandbox.destroy().await.unwrap();
    }

    async fn what_is_destroyed_is_gone_and_can_be_destroyed_again(stage: Stage) {
        let (sandbox, _talk) = stage.running(&stage.policy(), "sleep 60").await;
        sandbox.destroy().await.unwrap();
        sandbox.destroy().await.unwrap();
        assert_eq!(stage.backend.list().await.unwrap(), []);
        let opened = stage.backend.open(sandbox.id()).await;
        assert!(matches!(opened.map(drop), Err(OpenError::NotFound(_))));
    }

    async fn the_agent_works_in_the_workspace(stage: Stage) {
        let (sandbox, mut talk) = stage.running(&stage.policy(), "echo hello > made").await;
        talk.rest().await;
        let made = std::fs::read_to_string(stage.fixture.path("tree").join("made")).unwrap();
        assert_eq!(made, "hello\n");
        sandbox.destroy().await.unwrap();
    }

    async fn a_policy_that_cannot_be_enforced_is_refused(stage: Stage) {
        let mut policy = stage.policy();
        match stage.kind.mode {
            Mode::Host => policy.network = Network::None,
            Mode::Native | Mode::Docker | Mode::Apple => {
                policy.mounts = vec![Mount { path: "/no/such/path".into(), access: MountAccess::Ro }];
            }
        }
        let refusal = stage.backend.validate(&policy).await.unwrap_err();
        assert!(!refusal.problem.is_empty() && !refusal.remedy.is_empty(), "{refusal:?}");
        assert_eq!(stage.backend.validate(&stage.policy()).await, Ok(()));
    }

    async fn a_workspace_is_read_only_or_the_policy_is_refused(stage: Stage) {
        let policy = Policy { workspace_access: WorkspaceAccess::ReadOnly, ..stage.policy() };
        if !stage.kind.mode.is_sandboxed() {
            let refusal = stage.backend.validate(&policy).await.unwrap_err();
            assert!(refusal.problem.contains("workspace"), "{refusal:?}");
            return;
        }
        let script = "for folder in . /tmp $HOME; do touch $folder/new 2>/dev/null && echo open || echo closed; done";
        let (sandbox, mut talk) = stage.running(&policy, script).await;
        talk.rest().await;
        let seen = Talk::to(&*sandbox).await.rest().await;
        assert_eq!(texts(&seen), ["closed", "open", "open"]);
        let workspace = WorkspaceSeal::measured(inside::WORKSPACE, &measured(&seen));
        assert_eq!(workspace.access, WorkspaceAccess::ReadOnly);
        sandbox.wait().await.unwrap();
        assert_eq!(sandbox.exchange().changes().await, Changes::None);
        sandbox.destroy().await.unwrap();
    }

    async fn a_sandbox_that_cannot_be_made_leaves_nothing(stage: Stage) {
        let mut spec = stage.spec(&stage.policy(), Attachment::Detached);
        spec.workspace = Workspace::Overlay { layers: vec![stage.fixture.path("nowhere")] };
        assert!(stage.backend.create(&spec).await.is_err());
        assert_eq!(stage.backend.list().await.unwrap(), []);
    }

    async fn a_sandbox_cannot_be_made_twice_and_the_first_goes_on(stage: Stage) {
        let (sandbox, mut talk) = stage.running(&stage.policy(), ONE_TWO).await;
        let spec = stage.spec(&stage.policy(), Attachment::Detached);
        assert!(stage.backend.create(&spec).await.is_err(), "two sandboxes of one name");
        let seen = talk.rest().await;
        assert_eq!(end_of(&seen), Some(AgentEnd::Exited { code: 0 }));
        sandbox.destroy().await.unwrap();
    }
}
