//! Using more than one's share.

use cofferdam_core::Wall;
use rustix::io::Errno;

use crate::attempt::{Attempt, Attempted, Expect};
use crate::behaviours;

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "fork_bomb",
        wall: Wall::Limits,
        expect: Expect::Errno(&[Errno::AGAIN]),
        may_be_absent: None,
        run: |target| Attempted::by("processes started", behaviours::fork(target.processes)),
    },
    Attempt {
        name: "open_all_files",
        wall: Wall::Limits,
        expect: Expect::Errno(&[Errno::MFILE]),
        may_be_absent: None,
        run: |target| Attempted::by("files opened", behaviours::fds(target.open_files)),
    },
];
