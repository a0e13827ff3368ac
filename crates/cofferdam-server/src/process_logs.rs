//! The logs of this service's processes, which whoever keeps the processes knows how to read.

use std::io;

use cofferdam_core::ProcessName;

/// Reads logs of this machine.
pub trait ProcessLogs: Send + Sync {
    /// The last lines of a process's log until now, and the log from here on.
    ///
    /// # Errors
    /// If it cannot be read. One that is not there yet is empty.
    fn open(&self, name: ProcessName, lines: usize) -> io::Result<(String, Box<dyn FollowedLog>)>;
}

/// A log that is followed, also when its process is started again.
pub trait FollowedLog: Send {
    /// What was added since.
    ///
    /// # Errors
    /// If it cannot be read.
    fn more(&mut self) -> io::Result<String>;
}

/// For a service that keeps no process.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLogs;

impl ProcessLogs for NoLogs {
    fn open(&self, _name: ProcessName, _lines: usize) -> io::Result<(String, Box<dyn FollowedLog>)> {
        Ok((String::new(), Box::new(*self)))
    }
}

impl FollowedLog for NoLogs {
    fn more(&mut self) -> io::Result<String> {
        Ok(String::new())
    }
}
