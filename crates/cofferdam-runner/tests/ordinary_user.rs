//! The same for a user without any rights: started by root, these tests start themselves again as `nobody`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use cofferdam_core::Source;
use cofferdam_runner::workspace::Error;
use cofferdam_sandbox::Workspace;

use crate::fixture::{Place, run, shell};

const NOBODY: u32 = 65534;

/// Starts one of the ignored tests below as `nobody`, on a repository that root has changed by `script`.
fn as_nobody(test: &str, script: &str) {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: needs root to make files of several owners");
        return;
    }
    let place = Place::new();
    fs::set_permissions(place.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let root = place.repository("repo", "echo a > a; mkdir d; echo b > d/b; echo k > .env");
    run(Command::new("chown").args(["-R", "nobody:nogroup"]).arg(&root));
    shell(&root, script);
    // The test program itself may be where nobody may look.
    let program = place.path("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let temporary = place.path("tmp");
    fs::create_dir(&temporary).unwrap();
    chown(&temporary, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    command
        .args(["--ignored", "--exact", &format!("ordinary_user::{test}")])
        .env("TEST_REPOSITORY", &root)
        .env("TMPDIR", temporary);
    let printed = run(&mut command);
    assert!(printed.contains("1 passed"), "{printed}");
}

fn repository() -> PathBuf {
    PathBuf::from(std::env::var_os("TEST_REPOSITORY").expect("started by `as_nobody`"))
}

fn local(path: &Path) -> Source {
    Source::Local { path: path.to_owned() }
}

#[test]
fn an_own_repository_is_an_overlay() {
    as_nobody("own_repository", "true");
}

#[test]
#[ignore = "started by an_own_repository_is_an_overlay"]
fn own_repository() {
    let place = Place::new();
    let script = "test ! -e .env; echo c >> d/b; mv a aa; rm -r d; mkdir d; echo n > d/n; git -c safe.directory=* status >/dev/null";
    let collected = place.round_trip(&repository(), script);
    assert_eq!(collected.changed.len(), 3, "{collected:?}");
    assert!(matches!(place.prepare(&local(&repository())).unwrap().workspace, Workspace::Overlay { .. }));
}

#[test]
fn a_file_of_another_group_makes_it_a_copy() {
    as_nobody("file_of_another_group", "chgrp root d/b");
}

#[test]
fn an_object_of_another_user_makes_it_a_copy() {
    as_nobody(
        "file_of_another_group",
        "f=$(find .git/objects -type f | head -1); chown root $f; chmod 644 $f",
    );
}

#[test]
#[ignore = "started by a_file_of_another_group_makes_it_a_copy"]
fn file_of_another_group() {
    let place = Place::new();
    assert!(matches!(place.prepare(&local(&repository())).unwrap().workspace, Workspace::Folder { .. }));
    place.round_trip(&repository(), "test ! -e .env; echo c >> d/b; mv a aa");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    as_nobody("file_that_cannot_be_read", "chown root d/b; chmod 600 d/b");
}

#[test]
fn a_folder_that_cannot_be_read_is_named() {
    as_nobody("file_that_cannot_be_read", "mkdir d/b.d; mv d/b d/b.d; mv d/b.d d/b; chmod 0 d/b");
}

#[test]
#[ignore = "started by a_file_that_cannot_be_read_is_named"]
fn file_that_cannot_be_read() {
    let place = Place::new();
    let error = place.prepare(&local(&repository())).unwrap_err();
    assert!(matches!(&error, Error::Unreadable { path, .. } if path.ends_with("d/b")), "{error:?}");
    assert!(error.hint().unwrap().contains("chmod"));
    assert!(fs::read_dir(place.home.workspaces()).unwrap().next().is_none());
}
