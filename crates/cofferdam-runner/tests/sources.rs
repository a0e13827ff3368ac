//! Where workspaces come from: plain repositories, linked worktrees, submodules, borrowed objects, masked
//! files, addresses, and what is said where that does not work.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use cofferdam_core::{AttemptRef, FailureClass, LocalUrls, RepoUrl, RunId, SandboxId, Source};
use cofferdam_runner::workspace::{self, Error, find_repository};
use cofferdam_sandbox::Workspace;

use crate::fixture::{self, Git, Place, shell, snapshot};

fn both() -> [Place; 2] {
    [Place::new(), Place::copying()]
}

#[test]
fn masked_files_are_hidden_and_never_in_the_diff() {
    for place in both() {
        let root = place.repository("repo", "mkdir -p a/b; echo k > a/b/server.key; echo e > .env; echo x > .env.example; mkdir .envs; echo s > .envs/s; echo c > a/c; chmod 750 a");
        let script = "test ! -e .env; test ! -e a/b/server.key; test ! -e .envs; test -e .env.example; test $(stat -c %a a) = 750; echo mine > .env; echo d > a/b/d; rm -r a/c";
        let work = place.work_on(&root, script);
        assert_eq!(work.prepared.hidden, [".env", ".envs", "a/b/server.key"]);
        let (collected, patch) = place.collect(&work);
        let changed: Vec<_> = collected.changed.iter().map(|c| c.path.as_str()).collect();
        assert_eq!(changed, [".env", "a/b/d", "a/c"]);
        // The agent made a file where a hidden one is: that is a conflict for the user to solve.
        assert!(cofferdam_runner::artifacts::apply(&patch, &root).is_err());
        assert_eq!(fs::read_to_string(root.join(".env")).unwrap(), "e\n");
    }
}

#[test]
fn credentials_are_taken_out_of_what_git_shows_inside() {
    for place in both() {
        let root = place.repository("repo", "echo a > a");
        shell(
            &root,
            "git init -q nested; git -C nested config remote.o.url https://hunter2@h/x; git config remote.origin.url https://me:hunter2@host/x.git; git config http.extraheader 'Authorization: hunter2'; chmod 640 .git/config",
        );
        let before = snapshot(&root, Git::Included);
        let script = "! grep -r hunter2 .; git config remote.origin.url; test $(stat -c %a .git/config) = 640; git config user.name x; git status >/dev/null";
        let work = place.work_on(&root, script);
        assert_eq!(work.printed.trim(), "https://host/x.git");
        assert_eq!(work.prepared.stripped.len(), 3, "{:?}", work.prepared.stripped);
        let (collected, _) = place.collect(&work);
        assert!(collected.changed.is_empty() && collected.left_out.is_empty(), "{collected:?}");
        assert!(before == snapshot(&root, Git::Included));
    }
}

#[test]
fn a_linked_worktree_works_and_its_repository_is_untouched() {
    for place in both() {
        let main = place.repository("main", "echo a > a; echo '*.o' > .gitignore");
        shell(&main, "git worktree add -q ../tree -b side; git config remote.origin.url https://hunter2@h/x");
        let root = place.path("tree");
        let before = (snapshot(&main, Git::Included), snapshot(&root, Git::Included));
        let script = "! git config remote.origin.url | grep hunter2; echo b > b; echo o > x.o; git add b; git commit -qm two; git log --format=%s; git branch --show-current";
        let work = place.work_on(&root, script);
        assert_eq!(work.printed, "two\none\nside\n");
        let (collected, _) = place.collect(&work);
        assert_eq!(collected.changed.len(), 1, "{collected:?}");
        assert_eq!(collected.ignored_count, 1);
        assert!(before == (snapshot(&main, Git::Included), snapshot(&root, Git::Included)));
    }
}

#[test]
fn submodules_work_with_relative_and_absolute_git_files() {
    for place in both() {
        place.repository("lib", "echo l > l");
        let root = place.repository(
            "repo",
            "echo a > a; git -c protocol.file.allow=always submodule --quiet add ../lib lib",
        );
        for absolute in [false, true] {
            if absolute {
                let named = root.join(".git/modules/lib");
                fs::write(root.join("lib/.git"), format!("gitdir: {}\n", named.display())).unwrap();
            }
            let before = snapshot(&root, Git::Included);
            let work = place.work_on(
                &root,
                "cd lib; git log --format=%s; echo m >> l; git commit -qam two; git log --format=%s -1",
            );
            assert_eq!(work.printed, "one\ntwo\n");
            let (collected, _) = place.collect(&work);
            let changed: Vec<_> = collected.changed.iter().map(|c| c.path.as_str()).collect();
            assert_eq!(changed, ["lib/l"]);
            assert!(before == snapshot(&root, Git::Included));
        }
    }
}

#[test]
fn a_submodule_can_be_the_workspace() {
    for place in both() {
        place.repository("lib", "echo l > l");
        let root =
            place.repository("repo", "git -c protocol.file.allow=always submodule --quiet add ../lib lib");
        let before = snapshot(&root, Git::Included);
        let script = "git log --format=%s; git rev-parse --is-inside-work-tree >/dev/null; echo m >> l";
        let work = place.work_on(&root.join("lib"), script);
        assert_eq!(work.printed, "one\n");
        assert_eq!(place.collect(&work).0.changed.len(), 1);
        assert!(before == snapshot(&root, Git::Included));
    }
}

#[test]
fn borrowed_objects_are_visible() {
    let place = Place::new();
    let lender = place.repository("lender", "echo a > a");
    shell(lender.parent().unwrap(), "git clone -q --shared lender borrower");
    let root = place.path("borrower");
    fs::write(root.join(".git/objects/info/alternates"), "../../../lender/.git/objects\n").unwrap();
    let work = place.work_on(&root, "git log --format=%s; cat .git/objects/info/alternates");
    let objects = lender.join(".git/objects");
    assert_eq!(work.printed, format!("one\n{}\n", objects.display()));
    assert_eq!(work.prepared.read_only, [objects]);
}

#[test]
fn a_copy_shares_nothing_with_the_original() {
    let place = Place::copying();
    let root = place.repository("repo", "echo a > a; ln a b; mkfifo p; chmod 755 a; touch -d 2001-01-01 a; mkdir ro; echo x > ro/x; chmod 555 ro");
    let prepared = place.prepare(&Source::Local { path: root.clone() }).unwrap();
    let Workspace::Folder { path } = &prepared.workspace else { panic!("{prepared:?}") };
    use std::os::unix::fs::MetadataExt as _;
    for name in ["a", "b", "ro/x"] {
        let (copy, original) = (path.join(name).metadata().unwrap(), root.join(name).metadata().unwrap());
        assert_eq!(copy.nlink(), 1);
        assert_ne!(copy.ino(), original.ino());
        assert_eq!((copy.mode(), copy.mtime()), (original.mode(), original.mtime()));
    }
    assert_eq!(prepared.warnings.len(), 1, "{:?}", prepared.warnings);
    workspace::remove(&place.home, &place.id).unwrap();
    workspace::remove(&place.home, &place.id).unwrap();
    assert!(fs::read_dir(place.home.workspaces()).unwrap().next().is_none());
}

#[test]
fn a_state_folder_inside_the_repository_is_hidden() {
    let mut place = Place::new();
    let root = place.repository("repo", "echo a > a");
    place.home = cofferdam_runner::Home::open(&root.join("state")).unwrap();
    let work = place.work_on(&root, "test ! -e state; echo b > b");
    assert_eq!(work.prepared.hidden, ["state"]);
    assert_eq!(place.collect(&work).0.changed.len(), 1);
}

#[test]
fn outside_a_repository_it_says_what_to_type() {
    let place = Place::new();
    let error = find_repository(place.folder.path()).unwrap_err();
    assert!(matches!(error, Error::NotARepository { .. }));
    assert!(error.hint().unwrap().contains("git init"));
    let root = place.repository("repo", "mkdir -p a/b");
    assert_eq!(find_repository(&root.join("a/b")).unwrap(), root);
}

fn address(root: &Path) -> RepoUrl {
    RepoUrl::parse(&format!("file://{}", root.display()), LocalUrls::Allow).unwrap()
}

fn git(root: &Path, reference: Option<&str>) -> Source {
    Source::Git { url: address(root), reference: reference.map(str::to_owned) }
}

#[test]
fn an_address_is_checked_out_at_what_was_asked_for() {
    for place in both() {
        let origin = place.repository("origin", "echo a > a; printf '* filter=evil\\n' > .gitattributes");
        shell(
            &origin,
            "git tag v1; git checkout -q -b feature/x; echo b > b; git add b; git commit -qm two; git checkout -q main",
        );
        let commit = shell(&origin, "git rev-parse v1").trim().to_owned();
        let script = "git log --format=%s -1; git rev-parse --abbrev-ref HEAD; git config remote.origin.url; git status --porcelain; echo c > c";
        for (reference, subject, head) in [
            (None, "one", "main"),
            (Some("feature/x"), "two", "feature/x"),
            (Some("v1"), "one", "HEAD"),
            (Some(&commit[..]), "one", "HEAD"),
            (Some(&commit[..10]), "one", "HEAD"),
        ] {
            let work = place.work(&git(&origin, reference), script);
            assert_eq!(work.printed, format!("{subject}\n{head}\n{}\n", address(&origin)), "{reference:?}");
            assert_eq!(work.prepared.read_only.len(), 1);
            assert_eq!(place.collect(&work).0.changed.len(), 1);
        }
        // What is new at the address is fetched, also another default branch.
        shell(&origin, "git checkout -q -b trunk; git commit -q --allow-empty -m three");
        let work = place.work(&git(&origin, None), script);
        assert!(work.printed.starts_with("three\ntrunk\n"), "{}", work.printed);
    }
}

#[test]
fn a_reference_that_is_not_there_names_the_nearest() {
    let place = Place::new();
    let origin = place.repository("origin", "echo a > a");
    shell(&origin, "git tag v1.0; git branch release");
    for name in ["releese", "HEAD^", "main..release", "--all", "@{1}", "00000000"] {
        let error = place.prepare(&git(&origin, Some(name))).unwrap_err();
        assert!(matches!(error, Error::RefNotFound { .. }), "{name}: {error}");
    }
    let error = place.prepare(&git(&origin, Some("releese"))).unwrap_err();
    assert!(error.hint().unwrap().starts_with("did you mean release"), "{:?}", error.hint());
    assert!(fs::read_dir(place.home.workspaces()).unwrap().next().is_none());
}

#[test]
fn an_address_without_a_repository_is_a_clear_error() {
    let place = Place::new();
    let error = place.prepare(&git(&place.path("nothing"), None)).unwrap_err();
    assert!(matches!(&error, Error::Fetch { message, .. } if message.contains("does not")), "{error}");
    assert_eq!(error.class(), FailureClass::Repository);
}

#[test]
fn many_attempts_at_one_address_do_not_disturb_each_other() {
    let place = Place::new();
    let origin = place.repository("origin", "for i in $(seq 200); do echo $i > f$i; done");
    std::thread::scope(|scope| {
        for number in 1..=6 {
            let (place, origin) = (&place, &origin);
            scope.spawn(move || {
                let id = SandboxId::of(&AttemptRef { run: RunId::new(9, 9), number });
                let prepared = fixture::prepare(&place.home, &id, &git(origin, None), &place.policy).unwrap();
                let Workspace::Overlay { layers } = prepared.workspace else { panic!() };
                assert_eq!(fs::read_dir(layers.last().unwrap()).unwrap().count(), 201);
            });
        }
    });
}

#[test]
fn a_full_disk_is_told_as_such() {
    let place = Place::copying();
    let root = place.repository("repo", "head -c 3000000 /dev/urandom > big");
    let small = place.path("small");
    fs::create_dir(&small).unwrap();
    fixture::run(
        std::process::Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&small),
    );
    let home = cofferdam_runner::Home::open(&small.join("home")).unwrap();
    let prepared = fixture::prepare(&home, &place.id, &Source::Local { path: root.clone() }, &place.policy);
    let cloned = fixture::prepare(&home, &place.id, &git(&root, None), &place.policy);
    fixture::run(std::process::Command::new("umount").arg(&small));
    assert!(matches!(prepared.unwrap_err(), Error::DiskFull { .. }));
    let error = cloned.unwrap_err();
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
}

#[test]
fn a_closed_folder_is_no_obstacle_to_removal() {
    let place = Place::copying();
    let root = place.repository("repo", "mkdir d; echo x > d/x");
    let work = place.work_on(&root, "chmod 000 d");
    let (collected, _) = place.collect(&work);
    assert!(collected.changed.is_empty());
    fs::set_permissions(root.join("d"), fs::Permissions::from_mode(0o755)).unwrap();
    workspace::remove(&place.home, &place.id).unwrap();
}
