//! Lines for the worker: from whoever connects to the socket to the worker's stdin.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixListener;
use std::process::ChildStdin;
use std::sync::{Arc, Mutex};
use std::thread;

use cofferdam_core::ToWorker;

/// Copies lines in a thread of its own, so that a worker that does not read cannot stop the shim.
pub(super) struct Relay {
    stdin: Arc<Mutex<ChildStdin>>,
}

impl Relay {
    pub(super) fn start(listener: UnixListener, stdin: ChildStdin) -> io::Result<Self> {
        let stdin = Arc::new(Mutex::new(stdin));
        let worker = Arc::clone(&stdin);
        thread::Builder::new().name("relay".to_owned()).spawn(move || {
            // One at a time: a second one is a new process after the first has died.
            for client in listener.incoming().flatten() {
                copy(client, &worker);
            }
        })?;
        Ok(Self { stdin })
    }

    /// Says something of the shim's own, if the worker is listening at all.
    pub(super) fn send(&self, line: &ToWorker) {
        let Ok(mut stdin) = self.stdin.try_lock() else { return };
        let line = serde_json::to_string(line).expect("a line is plain data");
        // A half-written line of somebody who died would merge with ours.
        let _ = writeln!(stdin, "\n{line}");
    }
}

fn copy(mut client: impl Read, worker: &Mutex<ChildStdin>) {
    let mut buffer = [0; 64 * 1024];
    loop {
        match client.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                let Ok(mut stdin) = worker.lock() else { return };
                if stdin.write_all(&buffer[..count]).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}
