//! The walls around real processes.
//!
//! A harness of its own, because a process may only enter the walls while it has one thread: each test
//! starts this very program again in the role that the real binary has, `enter-walls`, and often as a program behind
//! the walls that measures them, `probe`. As root every test is run twice, once as root and once as an ordinary user, for whom the kernel has other rules.

#![expect(clippy::unwrap_used, reason = "clippy knows tests by the attribute of the ordinary harness")]

mod harness;
mod programs;
mod refusals;

fn main() {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(std::ffi::OsStr::to_str) {
        Some("enter-walls") => cofferdam_walls::enter_main(args),
        Some("probe") => harness::probe(args.next()),
        _ => harness::main(&[refusals::TESTS, programs::TESTS]),
    }
}
