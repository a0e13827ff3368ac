//! Containers of others, at the same engine. They are never touched.

use cofferdam_core::{AttemptRef, RunId, SandboxId};
use cofferdam_e2e::node_id;
use cofferdam_sandbox::{Attachment, Listed, OpenError, Workspace};

use crate::conformance::stage::Stage;
use crate::on_the_engine;

on_the_engine! {
    async fn containers_of_others_are_neither_listed_nor_opened(stage: Stage) {
        let (sandbox, _talk) = stage.running(&stage.policy(), "sleep 60").await;
        let (unmarked, foreign) = (another(1), another(2));
        let strangers = [
            Stranger::new(&stage, &format!("cofferdam-{unmarked}"), &[]),
            Stranger::new(&stage, &format!("cofferdam-{foreign}"), &[
                "dev.cofferdam.state=00000000000000000000000000000000".to_owned(),
                format!("dev.cofferdam.sandbox={foreign}"),
                format!("dev.cofferdam.node={}", node_id(1)),
            ]),
        ];
        for backend in [stage.backend.clone(), stage.backend_after_a_restart()] {
            let own = Listed { id: stage.id(), node: Some(node_id(1)) };
            assert_eq!(backend.list().await.unwrap(), [own]);
            for id in [&unmarked, &foreign] {
                let opened = backend.open(id).await.map(drop);
                assert!(matches!(opened, Err(OpenError::NotFound(_))), "{opened:?}");
            }
        }
        sandbox.destroy().await.unwrap();
        strangers.iter().for_each(|stranger| assert!(stranger.runs(), "{}", stranger.name));
    }

    async fn a_name_that_somebody_took_is_an_error_and_theirs_stays(stage: Stage) {
        let stranger = Stranger::new(&stage, &stage.container(), &[]);
        let made = stage.backend.create(&stage.spec(&stage.policy(), Attachment::Detached)).await;
        assert!(made.is_err(), "a container with somebody else's name");
        assert_eq!(stage.backend.list().await.unwrap(), []);
        assert!(stranger.runs());
    }

    async fn a_volume_whose_name_somebody_took_is_an_error_and_theirs_stays(stage: Stage) {
        let mut spec = stage.spec(&stage.policy(), Attachment::Detached);
        let Workspace::Folder { path } = &spec.workspace else { unreachable!("a stage works on a folder") };
        if rustix::process::geteuid().is_root() {
            // Root's own would be copied, since the agent is never root.
            std::os::unix::fs::chown(path, Some(54_321), Some(54_321)).unwrap();
        }
        spec.workspace = Workspace::Overlay { layers: vec![path.clone()] };
        let volume = format!("{}-0", stage.container());
        stage.by_hand(&["volume", "create", &volume]);
        let made = stage.backend.create(&spec).await;
        assert!(made.is_err(), "a workspace in somebody else's volume");
        assert_eq!(stage.backend.list().await.unwrap(), []);
        // It is still there, so it can be removed; and then everything is as ever.
        stage.by_hand(&["volume", "rm", &volume]);
        stage.backend.create(&spec).await.unwrap().destroy().await.unwrap();
    }
}

/// A container that somebody else runs at the same engine; it goes with the test.
struct Stranger<'a> {
    stage: &'a Stage,
    name: String,
}

impl<'a> Stranger<'a> {
    fn new(stage: &'a Stage, name: &str, labels: &[String]) -> Self {
        let image = stage.image();
        let mut arguments = vec!["run", "--detach", "--network", "none", "--name", name];
        arguments.extend(labels.iter().flat_map(|label| ["--label", label]));
        arguments.extend([image.as_str(), "sleep", "600"]);
        stage.by_hand(&arguments);
        Self { stage, name: name.to_owned() }
    }

    fn runs(&self) -> bool {
        let running = self.stage.by_hand(&["inspect", "--format", "{{.State.Running}}", &self.name]);
        running.trim() == "true"
    }
}

impl Drop for Stranger<'_> {
    fn drop(&mut self) {
        self.stage.by_hand(&["rm", "--force", &self.name]);
    }
}

fn another(number: u32) -> SandboxId {
    let random = u128::from(std::process::id()) << 64 | u128::from(number);
    SandboxId::of(&AttemptRef { run: RunId::new(cofferdam_runner::now_ms(), random), number: 1 })
}
