//! Reaps every process that ends: the agent, the probe, and the orphans that the kernel gives to us.

use std::collections::HashSet;
use std::io;
use std::process::Command;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, kill_process_group, wait, waitid,
};

use crate::input::Input;

/// Starts processes and reaps them. Nothing else in the worker may wait for a process: the reaper takes
/// every status there is.
pub(crate) struct Reaper {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    children: Mutex<Children>,
    born: Condvar,
}

#[derive(Default)]
struct Children {
    /// Whether there may be a child, of ours or given to us.
    any: bool,
    /// Those that we started and that were not reaped, so that their ids are still theirs.
    started: HashSet<Pid>,
}

impl Reaper {
    /// Starts the thread, which sends an input for each process that ended.
    pub(crate) fn start(sender: SyncSender<Input>) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        thread::Builder::new().name("reaper".to_owned()).spawn(move || reap_all(&of_thread, &sender))?;
        Ok(Self { shared })
    }

    /// Starts a process. Its end arrives as an input.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Pid> {
        // The lock is held over the whole spawn: when the program cannot be executed, the standard
        // library waits for the half-made child itself, and panics if somebody else has reaped it.
        let mut children = self.shared.lock();
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        children.started.insert(pid);
        children.any = true;
        self.shared.born.notify_one();
        Ok(pid)
    }

    /// Signals the group of a process that was started here. After its end this does nothing, since its
    /// id may by then be another's.
    pub(crate) fn signal_group(&self, pid: Pid, signal: Signal) {
        let children = self.shared.lock();
        if children.started.contains(&pid) {
            // It fails only if nobody is left in the group.
            let _ = kill_process_group(pid, signal);
        }
    }

    /// Whether no process is left. Since orphans become our children, there are then no grandchildren
    /// either.
    pub(crate) fn is_childless(&self) -> bool {
        !self.shared.lock().any
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Children> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reap_all(shared: &Shared, sender: &SyncSender<Input>) {
    loop {
        let waiting = shared.born.wait_while(shared.lock(), |children| !children.any);
        drop(waiting);
        // Looks without taking: taking happens under the lock, see `spawn` and `signal_group`.
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(_) | Err(Errno::CHILD | Errno::INTR) => {}
            Err(error) => unreachable!("waitid with constant arguments failed: {error}"),
        }
        let (ended, any) = reap_ended(shared);
        let inputs = ended.into_iter().map(|(pid, status)| Input::Reaped { pid, status });
        for input in inputs.chain((!any).then_some(Input::Childless)) {
            if sender.send(input).is_err() {
                return;
            }
        }
    }
}

fn reap_ended(shared: &Shared) -> (Vec<(Pid, WaitStatus)>, bool) {
    let mut ended = Vec::new();
    let mut children = shared.lock();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => {
                children.started.remove(&pid);
                ended.push((pid, status));
            }
            Ok(None) => break,
            Err(Errno::INTR) => {}
            Err(_) => {
                children.any = false;
                break;
            }
        }
    }
    (ended, children.any)
}
