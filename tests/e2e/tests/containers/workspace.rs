//! Whose the workspace is, and how it gets into a container.

use std::fs;

use cofferdam_e2e::containers::InContainers;
use cofferdam_e2e::tree_of;

use crate::in_every_container_mode;

/// Says who it is, whose a file is, and how the workspace is mounted; then it works.
const WORK: &str = "id -u; stat -c %u README.md; awk '$5 == \"/workspace\"' /proc/self/mountinfo; \
    echo more >> README.md; rm src/main.txt; mkdir new; echo new > new/file";

/// Says how the workspace is mounted, and tries to change it.
const REVIEW: &str = "awk '$5 == \"/workspace\"' /proc/self/mountinfo; cat README.md; \
    (echo more >> README.md) 2>/dev/null || echo closed; touch new 2>/dev/null || echo closed; echo x > /tmp/x && echo x > ~/x && echo open";

in_every_container_mode! {
    fn the_owner_of_a_repository_works_on_layers_of_it(mode: &'static ContainerMode) {
        let Some(stage) = InContainers::new(mode) else { return };
        let owner = stage.owned_repository().to_string();
        let (users, mounted) = works(&stage);
        assert_eq!(users, [owner.clone(), owner]);
        assert!(mounted.contains(" - overlay "), "{mounted}");
    }

    fn a_repository_of_root_is_copied_since_the_agent_is_never_root(mode: &'static ContainerMode) {
        let Some(stage) = InContainers::new(mode) else { return };
        if !rustix::process::geteuid().is_root() {
            return eprintln!("skipped: an ordinary user has no repository of root's");
        }
        let (users, mounted) = works(&stage);
        assert_ne!(users[0], "0");
        assert_eq!(users[0], users[1]);
        assert!(!mounted.contains(" - overlay "), "{mounted}");
    }

    fn a_path_that_mount_would_misread_is_copied(mode: &'static ContainerMode) {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("a,b:c\\d");
        fs::create_dir(&odd).unwrap();
        let Some(stage) = InContainers::below(mode, &odd) else { return };
        let owner = stage.owned_repository().to_string();
        let (users, mounted) = works(&stage);
        assert_eq!(users[0], users[1], "not {owner}, but whoever the copy was given to");
        assert!(!mounted.contains(" - overlay "), "{mounted}");
    }

    fn a_read_only_workspace_is_mounted_so_layered_and_copied(mode: &'static ContainerMode) {
        for is_layered in [true, false] {
            let Some(stage) = InContainers::new(mode) else { return };
            if is_layered {
                let _ = stage.owned_repository();
            } else if !rustix::process::geteuid().is_root() {
                return eprintln!("skipped: an ordinary user has no repository of root's");
            }
            let before = tree_of(&stage.fixture.repository(), &[]);
            let finished = stage.run(&["--read-only"], REVIEW);
            assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
            let printed = stage.fixture.printed(&finished.run_id());
            assert_eq!(printed[0].contains(" - overlay "), is_layered, "{printed:?}");
            assert!(printed[0].contains(" ro,"), "{printed:?}");
            assert_eq!(printed[1..], ["hello", "closed", "closed", "open"]);
            assert_eq!(finished.diff(), "");
            assert_eq!(finished.json()["seal"]["workspace"]["access"], "read_only");
            assert!(finished.stderr.contains(", workspace read-only, "), "{}", finished.stderr);
            assert_eq!(tree_of(&stage.fixture.repository(), &[]), before, "the original has changed");
        }
    }
}

/// Runs [`WORK`]. The diff is as ever, and the original has not changed. Who the agent and its files were, and the mount.
fn works(stage: &InContainers) -> ([String; 2], String) {
    let before = tree_of(&stage.fixture.repository(), &[]);
    let finished = stage.run(&[], WORK);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
    let diff = finished.diff();
    for change in ["+more\n", "deleted file mode", "+new\n"] {
        assert!(diff.contains(change), "{change}: {diff}");
    }
    assert_eq!(tree_of(&stage.fixture.repository(), &[]), before, "the original has changed");
    let printed = stage.fixture.printed(&finished.run_id());
    ([printed[0].clone(), printed[1].clone()], printed[2].clone())
}
