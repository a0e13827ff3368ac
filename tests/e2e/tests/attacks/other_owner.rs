//! A repository of another user that root runs leads to nothing of root's, on every sealed backend: what is followed belongs
//! to the repository's owner. That each of them does lead there for root's own repository shows that it is this which
//! stops it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use cofferdam_e2e::containers::{APPLE_PODMAN, ContainerMode, DOCKER, InContainers};
use cofferdam_e2e::{Finished, Fixture};
use cofferdam_test_marks::limits;

/// Nobody whom a machine knows.
const SOMEBODY: u32 = 12345;

#[limits]
#[test]
fn on_native_a_repository_of_another_user_leads_to_nothing_of_roots() {
    if let Some(stage) = Stage::new(Fixture::new(), "native") {
        stage.attack();
    }
}

#[limits]
#[test]
fn in_docker_a_repository_of_another_user_leads_to_nothing_of_roots() {
    in_containers(&DOCKER);
}

#[limits]
#[test]
fn in_podman_a_repository_of_another_user_leads_to_nothing_of_roots() {
    in_containers(&APPLE_PODMAN);
}

fn in_containers(mode: &'static ContainerMode) {
    let Some(containers) = InContainers::new(mode) else { return };
    if let Some(stage) = Stage::new(containers.fixture, mode.mode) {
        stage.attack();
    }
}

/// A repository of root's in a folder that is closed to others, and a hostile one beside it.
struct Stage {
    fixture: Fixture,
    mode: &'static str,
    roots: PathBuf,
}

impl Stage {
    fn new(fixture: Fixture, mode: &'static str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("SKIPPED: only root can set up: files of several owners");
            return None;
        }
        let roots = fixture.path("").canonicalize().expect("it is there").join("roots");
        fs::create_dir(&roots).expect("a new folder");
        fs::set_permissions(&roots, Permissions::from_mode(0o700)).expect("it is ours");
        fs::write(roots.join("secret"), "of root's\n").expect("a new file");
        for arguments in [&["init", "--quiet"][..], &["add", "--all"], &["commit", "--quiet", "--message=x"]]
        {
            let done = fixture.git_command(&roots).args(arguments).status();
            assert!(done.expect("git is installed").success());
        }
        Some(Self { fixture, mode, roots })
    }

    fn attack(&self) {
        self.alternates();
        self.linked_worktree();
        self.linked_exclude();
    }

    /// `objects/info/alternates` names root's objects.
    fn alternates(&self) {
        let repository = self.fixture.repository();
        let objects = self.roots.join(".git/objects");
        let alternates = repository.join(".git/objects/info/alternates");
        fs::write(&alternates, format!("{}\n", objects.display())).expect("a new file");
        let script = format!("echo shown=$(cat {}/*/* 2>/dev/null | wc -c)", objects.display());
        let shown = |owner: u32| {
            give(&repository, owner);
            self.printed(&self.run(&repository, &script))
        };
        assert_ne!(shown(0), ["shown=0"], "root's own repository borrows them");
        assert_eq!(shown(SOMEBODY), ["shown=0"]);
        fs::remove_file(alternates).expect("it was there");
    }

    /// A `.git` file names a worktree of root's repository, which names it in return: root once made one there.
    fn linked_worktree(&self) {
        let linked = self.roots.with_file_name("linked");
        let mut git = self.fixture.git_command(&self.roots);
        let added = git.args(["worktree", "add", "--quiet"]).arg(&linked).status();
        assert!(added.expect("git is installed").success());
        // As an overlay it is where it was, in a copy it is the workspace's own.
        let git = self.roots.join(".git");
        let script =
            format!("echo shown=$(cat {}/objects/*/* .git/objects/*/* 2>/dev/null | wc -c)", git.display());
        let shown = |owner: u32| {
            give(&linked, owner);
            let finished = self.run(&linked, &script);
            (self.printed(&finished), finished.stderr.contains("which is no git folder of this work tree"))
        };
        let (roots, is_told) = shown(0);
        assert!(roots != ["shown=0"] && !is_told, "root's own worktree has its history: {roots:?}");
        assert_eq!(shown(SOMEBODY), (vec!["shown=0".to_owned()], true));
    }

    /// A link in the place of `info/exclude` leads to a file of root's, whose lines then say what is in the diff.
    fn linked_exclude(&self) {
        let (repository, rules) = (self.fixture.repository(), self.roots.join("rules"));
        fs::write(&rules, "planted\n").expect("a new file");
        fs::set_permissions(&rules, Permissions::from_mode(0o600)).expect("it is ours");
        let exclude = repository.join(".git/info/exclude");
        fs::create_dir_all(exclude.parent().expect("a folder")).expect("a folder");
        let _ = fs::remove_file(&exclude);
        symlink(&rules, &exclude).expect("a new link");
        let is_hidden = |owner: u32| {
            give(&repository, owner);
            !self.run(&repository, "echo x > planted").diff().contains("planted")
        };
        assert!(is_hidden(0), "root's own repository obeys root's rules");
        assert!(!is_hidden(SOMEBODY), "a file of root's was read");
    }

    fn run(&self, repository: &Path, script: &str) -> Finished {
        let repository = repository.to_str().expect("a plain path");
        let finished = self.fixture.run(&["--mode", self.mode, "--repo", repository], script);
        assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);
        finished
    }

    fn printed(&self, finished: &Finished) -> Vec<String> {
        self.fixture.printed(&finished.run_id())
    }
}

/// Gives everything at a path to a user. Links are given themselves, and not what they lead to.
fn give(path: &Path, owner: u32) {
    lchown(path, Some(owner), Some(owner)).expect("root may give files away");
    if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        for entry in fs::read_dir(path).expect("a folder").flatten() {
            give(&entry.path(), owner);
        }
    }
}
