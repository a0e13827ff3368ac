//! A disk with little room.

use std::path::PathBuf;
use std::process::Command;

/// Says to a test, started again on a disk of its own, where that disk is.
const SMALL_DISK: &str = "COFFERDAM_TEST_SMALL_DISK";
const MOUNT: &str = "mount -t tmpfs -o size=\"$1\" tmpfs \"$2\" || exit 77; shift 2; exec \"$@\"";

/// The disk, where this test was started again on one. Otherwise it is, on a disk of this size that nobody else sees, and
/// `None` is for whoever started it.
pub(crate) fn small_disk(test: &str, size: &str) -> Option<PathBuf> {
    if let Some(disk) = std::env::var_os(SMALL_DISK) {
        return Some(disk.into());
    }
    let folder = tempfile::tempdir().expect("a folder");
    let root = rustix::process::geteuid().is_root();
    let output = Command::new("unshare")
        .args(if root { &["--mount"][..] } else { &["--user", "--map-root-user", "--mount"] })
        .args(["sh", "-c", MOUNT, "sh", size])
        .arg(folder.path())
        .arg(std::env::current_exe().expect("this test is a program"))
        .args(["--exact", test, "--nocapture"])
        .env(SMALL_DISK, folder.path())
        .output()
        .expect("unshare is everywhere");
    let told = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || told.starts_with("unshare: ") {
        assert!(std::env::var_os("CI").is_none_or(|ci| ci.is_empty()), "{told}");
        eprintln!("skipped: no disk can be mounted here: {told}");
        return None;
    }
    assert!(output.status.success(), "{} {told}", String::from_utf8_lossy(&output.stdout));
    None
}
