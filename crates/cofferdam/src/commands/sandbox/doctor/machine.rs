//! The kernel, the state folder's disk, and git.

use std::path::Path;
use std::time::Duration;

use cofferdam_core::{DiskSpace, show_bytes};
use cofferdam_runner::Git;
use cofferdam_runner::installation::Search;
use cofferdam_sandbox::{Finding, Status};

use crate::caller::Caller;
use crate::repository;

/// With less than this, a build or two fill the disk.
const LITTLE_SPACE: u64 = 1 << 30;
/// It takes a millisecond.
const GIT_DEADLINE: Duration = Duration::from_secs(10);

/// Which kernel this is.
pub(super) fn kernel() -> Finding {
    let name = rustix::system::uname();
    Finding::ok(
        "kernel",
        format!("{} {}", name.release().to_string_lossy(), name.machine().to_string_lossy()),
    )
}

/// Where runs are kept, and how much space there is.
pub(super) fn state_folder(path: &Path) -> Finding {
    let name = "state_folder";
    let shown = path.display();
    match rustix::fs::statfs(path) {
        Err(errno) => {
            Finding::unknown(name, format!("{shown}: its file system cannot be looked at: {errno}"))
        }
        Ok(found) => {
            let block = u64::try_from(found.f_bsize).unwrap_or(0);
            let free_bytes = found.f_bavail.saturating_mul(block);
            let space = DiskSpace { free_bytes, total_bytes: found.f_blocks.saturating_mul(block) };
            weigh(name, &format!("{shown} ({}, ", file_system(found.f_type)), space)
        }
    }
}

fn weigh(name: &'static str, place: &str, space: DiskSpace) -> Finding {
    if space.is_low() || space.free_bytes < LITTLE_SPACE {
        let remedy =
            "make space, keep less (`retention`), or export COFFERDAM_HOME=/a/folder/on/another/disk";
        return Finding::new(name, Status::Weak, &format!("{place}{})", space.words()), remedy);
    }
    Finding::ok(name, format!("{place}{} free)", show_bytes(space.free_bytes)))
}

/// The names of the usual ones; the others by their number.
fn file_system(magic: impl TryInto<i64>) -> String {
    match magic.try_into().unwrap_or_default() & 0xffff_ffff {
        0xef53 => "ext4".to_owned(),
        0x0102_1994 => "tmpfs".to_owned(),
        0x9123_683e => "btrfs".to_owned(),
        0x5846_5342 => "xfs".to_owned(),
        0x794c_7630 => "overlay".to_owned(),
        0x2fc1_2fc1 => "zfs".to_owned(),
        0xf2f5_2010 => "f2fs".to_owned(),
        0xca45_1a4e => "bcachefs".to_owned(),
        number => format!("file system {number:#x}"),
    }
}

/// The git that makes diffs.
pub(super) async fn git(caller: &Caller) -> Finding {
    let name = "git";
    let (path, around) = (caller.path(), repository::root_around(&caller.current_folder));
    let git = Git::for_tools(&Search { path: &path, home: None, exclude: around.as_deref() });
    let asked = tokio::process::Command::new(&git)
        .arg("--version")
        .env_clear()
        .current_dir("/")
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(GIT_DEADLINE, asked).await {
        Ok(Ok(output)) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout);
            let version = said.trim().trim_start_matches("git version ");
            Finding::ok(name, format!("{version} ({})", git.display()))
        }
        Ok(Ok(output)) => {
            Finding::unknown(name, format!("{} --version ended with {}", git.display(), output.status))
        }
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Finding::new(
            name,
            Status::Missing,
            "there is no git in the system's folders, and without it no diff is made",
            "sudo apt install git (or your system's way)",
        ),
        Ok(Err(error)) => Finding::unknown(name, format!("{} cannot be started: {error}", git.display())),
        Err(_) => Finding::unknown(name, format!("{} --version does not end", git.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_little_space_or_a_small_part_of_it_is_weak() {
        let status = |free_bytes, total_bytes| {
            let found = weigh("state_folder", "/s (ext4, ", DiskSpace { free_bytes, total_bytes });
            (found.status, found.detail)
        };
        let (weak, detail) = status(4 << 30, 100 << 30);
        assert_eq!((weak, detail.as_str()), (Status::Weak, "/s (ext4, 4.0 % free (4 GiB of 100 GiB))"));
        assert_eq!(status(1 << 29, 1 << 30).0, Status::Weak);
        assert_eq!(status(5 << 30, 100 << 30), (Status::Ok, "/s (ext4, 5 GiB free)".to_owned()));
    }
}
