//! A process that is killed leaves a container; the next command removes it, and nobody else's.

use std::fs;
use std::time::Duration;

use cofferdam_e2e::containers::InContainers;
use cofferdam_e2e::processes::{kill_9, wait_until, with_role};
use cofferdam_e2e::{Record, leftovers};

use crate::in_every_container_mode;

const START: Duration = Duration::from_secs(30);

in_every_container_mode! {
    fn the_container_of_a_killed_run_is_gone_after_the_next_command(mode: &'static ContainerMode) {
        let Some(stage) = InContainers::new(mode) else { return };
        kill_a_run(&stage, || ());
        is_swept(&stage, "failed/lost");
    }

    fn it_is_gone_too_if_its_watcher_was_killed_with_it(mode: &'static ContainerMode) {
        let Some(stage) = InContainers::new(mode) else { return };
        kill_a_run(&stage, || with_role(&stage.fixture.state(), "watcher").into_iter().for_each(kill_9));
        let state = stage.by_hand(&["inspect", "--format", "{{.State.Running}}", &stage.containers()[0]]);
        assert_eq!(state.trim(), "true", "nobody has ended it yet");
        is_swept(&stage, "failed/lost");
    }

    fn a_container_whose_folder_is_gone_is_found_by_its_labels(mode: &'static ContainerMode) {
        let Some(stage) = InContainers::new(mode) else { return };
        kill_a_run(&stage, || {
            with_role(&stage.fixture.state(), "watcher").into_iter().for_each(kill_9);
            let folder = stage.fixture.state().join("sandboxes").join(mode.mode);
            for entry in fs::read_dir(folder).unwrap() {
                cofferdam_sandbox::remove_tree(&entry.unwrap().path()).unwrap();
            }
        });
        is_swept(&stage, "failed/sandbox");
    }

    fn the_container_of_a_run_that_lives_is_left_alone(mode: &'static ContainerMode) {
        let Some(stage) = InContainers::new(mode) else { return };
        let marks = stage.marks();
        let script = marks.script("while ! [ -e go ]; do sleep 0.1; [ -e $GO ] && touch go; done");
        let go = marks.folder().join("go");
        let script = script.replace("$GO", &go.display().to_string());
        let running = stage.start(&["--mount", &marks.mount()], &script);
        wait_until(START, "the agent works", || marks.starts() == 1);
        let listed = stage.fixture.cofferdam(["runs", "list", "--json"]);
        assert_eq!(listed.code, Some(0), "{}", listed.stderr);
        assert_eq!(stage.containers().len(), 1);
        fs::write(go, "").unwrap();
        assert_eq!(running.finish().outcome(), "succeeded");
        assert_eq!((stage.containers(), stage.volumes()), (vec![], vec![]));
    }
}

/// `kill -9` in the middle of an attached run, and what else is done right after.
fn kill_a_run(stage: &InContainers, besides: impl Fn()) {
    let _ = stage.owned_repository();
    let marks = stage.marks();
    let running = stage.start(&["--mount", &marks.mount()], &marks.script("sleep 60"));
    wait_until(START, "the agent works", || marks.starts() == 1);
    assert_eq!((stage.containers().len(), stage.volumes().len()), (1, 1));
    // The watcher first, where it dies as well: it would end the container of a run that is gone.
    besides();
    kill_9(running.pid());
    let _ = running.finish();
}

fn is_swept(stage: &InContainers, outcome: &str) {
    // Tests run side by side, at one engine.
    let test = fs::read_to_string(stage.fixture.state().join("id")).expect("a number");
    let (stranger, foreign) =
        (format!("cofferdam-sbx_stranger-{test}"), format!("cofferdam-sbx_foreign-{test}"));
    let image = stage.engine.small_image();
    let _ = stage.by_hand(&["create", "--name", &stranger, image, "true"]);
    let label = "dev.cofferdam.state=00000000000000000000000000000000";
    let _ = stage.by_hand(&["create", "--name", &foreign, "--label", label, image, "true"]);
    let _ = stage.by_hand(&["volume", "create", "--label", label, &foreign]);

    let record = Record::of_the_only_run(&stage.fixture);
    record.assert_ended_once();
    assert_eq!(record.outcome(), outcome);
    assert_eq!((stage.containers(), stage.volumes()), (vec![], vec![]));
    assert_eq!(leftovers(&stage.fixture.state()), [""; 0]);

    // Both are still there, so both can be removed.
    let _ = stage.by_hand(&["rm", &stranger, &foreign]);
    let _ = stage.by_hand(&["volume", "rm", &foreign]);
}
