//! Whether a container sees what is mounted into it. Policies of the system (SELinux, AppArmor), a shift of users, and
//! engines in virtual machines that share some folders alone may each be in the way, and none of them can be asked.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::Bound;
use crate::backend::{Finding, Refusal};
use crate::remove::remove_tree;
use crate::trials;

/// Where the folder is inside.
const TARGET: &str = "/cofferdam-mount";
const FILE: &str = "mounted";
const WORD: &str = "cofferdam";

/// A folder to mount. It is removed with this.
pub(crate) struct MountTrial {
    place: PathBuf,
}

impl MountTrial {
    pub(crate) fn new(state: &Path) -> io::Result<Self> {
        let place = trials::new_folder(state, "mount")?;
        fs::write(place.join(FILE), WORD)?;
        Ok(Self { place })
    }

    /// What the container is shown besides our binary.
    pub(crate) fn bound(&self) -> Bound {
        Bound::read_only(&self.place, TARGET)
    }

    /// The role and its argument, for our binary in the container.
    pub(crate) fn arguments() -> [String; 2] {
        ["try-mount".to_owned(), format!("{TARGET}/{FILE}")]
    }
}

impl Drop for MountTrial {
    fn drop(&mut self) {
        let _ = remove_tree(&self.place);
    }
}

/// The role: reads the file that is named. 0 if it is what was put there.
#[must_use]
pub fn try_mount_main(path: &Path) -> ExitCode {
    match fs::read_to_string(path) {
        Ok(word) if word == WORD => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stdout(), "{error}");
            ExitCode::FAILURE
        }
    }
}

/// The finding `mounts`, from how the role ended and what it said, or from why there was no container.
pub(crate) fn mounts(answer: Result<(i64, &str), &str>) -> Finding {
    let why = match answer {
        Ok((0, _)) => return Finding::ok("mounts", "a container sees what is mounted into it"),
        Ok((_, said)) => said.trim(),
        Err(why) => why,
    };
    let selinux = fs::read_to_string("/sys/fs/selinux/enforce").is_ok_and(|text| text.trim() == "1");
    Finding::missing("mounts", &blocked(why, selinux))
}

fn blocked(why: &str, selinux: bool) -> Refusal {
    let denied = why.to_lowercase().contains("denied");
    let (who, remedy) = match (denied, selinux) {
        (true, true) => (
            "SELinux keeps containers away from the state folder",
            "sudo semanage fcontext -a -t container_file_t \"$HOME/.cofferdam(/.*)?\" && sudo restorecon -R ~/.cofferdam",
        ),
        (true, false) => (
            "a policy of the system, or a shift of users, keeps containers away from the state folder",
            "sudo dmesg | grep -i apparmor; docker info --format '{{.SecurityOptions}}'; or use --mode native",
        ),
        (false, _) => (
            "the state folder cannot be mounted into a container",
            "share it with the engine (in a virtual machine: its settings, file sharing), or export \
             COFFERDAM_HOME=/a/folder/that/it/shares",
        ),
    };
    let said = if why.is_empty() { "it sees another file" } else { why };
    Refusal::new(format!("{who}: {said}"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Status;

    #[test]
    fn whoever_is_in_the_way_is_named() {
        assert_eq!(mounts(Ok((0, ""))).status, Status::Ok);
        let found = mounts(Ok((1, "Permission denied (os error 13)\n")));
        assert_eq!((found.name, found.status), ("mounts", Status::Missing));
        assert!(blocked("Permission denied (os error 13)", true).remedy.contains("container_file_t"));
        assert!(blocked("Permission denied (os error 13)", false).problem.contains("policy of the system"));
        let desktop = blocked("mounts denied: the path /x is not shared from the host", false);
        assert!(desktop.problem.contains("is not shared"), "{desktop:?}");
        assert!(blocked("No such file or directory (os error 2)", true).remedy.contains("file sharing"));
    }
}
