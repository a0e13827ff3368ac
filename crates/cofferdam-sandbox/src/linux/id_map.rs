//! User namespaces that exist only to say which owner is shown as which.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use cofferdam_core::inside;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::plan::{IdRange, Owner};
use super::sys::{Cloned, clone};

/// A namespace in which the files of `owner` belong to the agent of the sandbox with these ids, and all
/// other files to whoever has the same number inside.
pub(super) fn namespace(owner: Owner, ids: IdRange) -> io::Result<OwnedFd> {
    let (mut hold_read, hold_write) = io::pipe()?;
    match clone(libc::CLONE_NEWUSER, None)? {
        Cloned::Child => {
            drop(hold_write);
            let _ = hold_read.read(&mut [0]);
            std::process::exit(0)
        }
        Cloned::Parent(pid) => {
            let made = write_maps(pid, &map(owner.uid, ids), &map(owner.gid, ids))
                .and_then(|()| File::open(format!("/proc/{}/ns/user", pid.as_raw_nonzero())));
            let _ = kill_process(pid, Signal::KILL);
            let _ = waitpid(Some(pid), WaitOptions::empty());
            Ok(made?.into())
        }
    }
}

/// Writes the id maps of a new user namespace.
pub(super) fn write_maps(pid: Pid, uids: &str, gids: &str) -> io::Result<()> {
    let write = |file: &str, content: &str| {
        // The kernel takes a map in a single write.
        File::options()
            .write(true)
            .open(format!("/proc/{}/{file}", pid.as_raw_nonzero()))?
            .write_all(content.as_bytes())
    };
    write("uid_map", uids)?;
    write("gid_map", gids)
}

/// Lines of `on-disk-id host-id count`: `owner` trades places with the agent, everybody else keeps their
/// number within the range.
fn map(owner: u32, ids: IdRange) -> String {
    let agent = inside::UID;
    let mut lines = vec![(owner, agent, 1)];
    let mut from = 0;
    let mut cuts = [owner.min(IdRange::COUNT), agent, IdRange::COUNT];
    cuts.sort_unstable();
    for cut in cuts {
        if cut > from {
            lines.push((from, from, cut - from));
        }
        from = from.max(cut + 1);
    }
    if owner != agent && owner < IdRange::COUNT {
        lines.push((agent, owner, 1));
    }
    lines.sort_unstable();
    lines.iter().map(|&(disk, shown, count)| format!("{disk} {} {count}\n", ids.host(shown))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: IdRange = IdRange { base: 100_000 };

    #[test]
    fn the_owner_and_the_agent_trade_places() {
        let expected = "0 101000 1\n1 100001 999\n1000 100000 1\n1001 101001 64535\n";
        assert_eq!(map(0, IDS), expected);
    }

    #[test]
    fn an_owner_with_the_agents_number_keeps_it() {
        assert_eq!(map(1000, IDS), "0 100000 1000\n1000 101000 1\n1001 101001 64535\n");
    }

    #[test]
    fn an_owner_beyond_the_range_is_shown_as_the_agent() {
        let expected = "0 100000 1000\n1001 101001 64535\n3000000 101000 1\n";
        assert_eq!(map(3_000_000, IDS), expected);
    }
}
