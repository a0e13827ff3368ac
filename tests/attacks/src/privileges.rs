//! Who the attacker is, and whether it can become more.

use std::process::Command;

use cofferdam_core::Wall;
use rustix::io::Errno;

use crate::attempt::{Attempt, Attempted, Expect};
use crate::sys::{Arg, call};
use crate::target::Target;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "capabilities_left",
        wall: Wall::Capabilities,
        expect: Expect::Measured,
        may_be_absent: None,
        run: capabilities_left,
    },
    Attempt {
        name: "root_inside",
        wall: Wall::User,
        expect: Expect::Measured,
        may_be_absent: None,
        run: root_inside,
    },
    Attempt {
        name: "become_root",
        wall: Wall::User,
        // EINVAL: the sandbox's user namespace has no root at all.
        expect: Expect::Errno(&[Errno::PERM, Errno::INVAL]),
        may_be_absent: None,
        run: become_root,
    },
    Attempt {
        name: "no_seccomp_filter",
        wall: Wall::Seccomp,
        expect: Expect::Measured,
        may_be_absent: None,
        run: no_seccomp_filter,
    },
    Attempt {
        name: "new_privileges_possible",
        wall: Wall::NoNewPrivileges,
        expect: Expect::Measured,
        may_be_absent: None,
        run: new_privileges_possible,
    },
    Attempt {
        name: "set_user_id_program",
        wall: Wall::NoNewPrivileges,
        expect: Expect::Measured,
        may_be_absent: None,
        run: set_user_id_program,
    },
];

/// A line of `/proc/self/status`.
fn status(field: &str) -> String {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.map_or_else(|| "unreadable".to_owned(), |value| value.trim().to_owned())
}

/// Any set counts: a capability in the bounding set alone can be gained by executing a file that has it.
fn capabilities_left(_: &Target) -> Attempted {
    let sets = ["CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb"].map(|set| (set, status(set)));
    let left = sets.iter().any(|(_, value)| value.bytes().any(|digit| digit != b'0'));
    Attempted::measured(left, format!("{sets:?}"))
}

fn root_inside(_: &Target) -> Attempted {
    let ids = [status("Uid"), status("Gid")];
    let root = ids.iter().any(|ids| ids.split_whitespace().any(|id| id == "0" || id == "unreadable"));
    Attempted::measured(root, format!("{ids:?}"))
}

fn become_root(_: &Target) -> Attempted {
    Attempted::by("setuid(0)", call(libc::SYS_setuid, [Arg::Int(0)]))
}

fn no_seccomp_filter(_: &Target) -> Attempted {
    let mode = status("Seccomp");
    Attempted::measured(mode != "2", format!("seccomp mode {mode}"))
}

fn new_privileges_possible(_: &Target) -> Attempted {
    let flag = status("NoNewPrivs");
    Attempted::measured(flag != "1", format!("no-new-privileges {flag}"))
}

/// Executes a set-user-id program of root's that prints who it runs as. Root itself first becomes an
/// ordinary user: what counts is whether the program gives something back.
fn set_user_id_program(target: &Target) -> Attempted {
    const NOBODY: i64 = 65534;
    if rustix::process::geteuid().is_root() {
        let dropped = call(libc::SYS_setgid, [Arg::Int(NOBODY)])
            .and_then(|_| call(libc::SYS_setuid, [Arg::Int(NOBODY)]));
        if let Err(errno) = dropped {
            return Attempted::NotPossible(format!("root cannot become an ordinary user: {errno}"));
        }
    }
    match Command::new(&target.set_user_id_program).arg("whoami").output() {
        Ok(output) => {
            let user = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            Attempted::measured(user == "0", format!("the program runs as {user}"))
        }
        Err(error) => Attempted::NotPossible(format!("{}: {error}", target.set_user_id_program.display())),
    }
}
