//! Notices that whoever started the worker is dead.
//!
//! In a sandbox the kernel ends the worker and everything with it. On the host nothing would: the agent
//! would go on, with no wall clock and nobody to end it.

use std::io;
use std::sync::mpsc::SyncSender;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, getppid, pidfd_open};

use crate::input::Input;

/// Starts the thread that waits for the parent's end.
pub(crate) fn start_watching(sender: SyncSender<Input>) -> io::Result<()> {
    let Some(parent) = getppid() else { return Ok(()) };
    let process = pidfd_open(parent, PidfdFlags::empty())?;
    // The number may have passed to somebody else between the two.
    if getppid() != Some(parent) {
        return Err(io::Error::other("the process that started the worker is gone"));
    }
    thread::Builder::new().name("parent".to_owned()).spawn(move || {
        let mut polled = [PollFd::new(&process, PollFlags::IN)];
        while poll(&mut polled, None).is_err() {}
        let _ = sender.send(Input::Orphaned);
    })?;
    Ok(())
}
