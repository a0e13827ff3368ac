//! The logs of this service's processes, for its API.

use std::io;

use cofferdam_core::{NodeName, ProcessName};
use cofferdam_runner::Home;
use cofferdam_server::{FollowedLog, ProcessLogs};

use super::{LogOf, Tail, log_path};

/// The logs of this service's processes.
pub(crate) struct OwnLogs {
    home: Home,
    service: NodeName,
}

impl OwnLogs {
    /// Those of the service of this name.
    pub(crate) fn new(home: &Home, service: &NodeName) -> Self {
        Self { home: home.clone(), service: service.clone() }
    }
}

impl ProcessLogs for OwnLogs {
    fn open(&self, name: ProcessName, lines: usize) -> io::Result<(String, Box<dyn FollowedLog>)> {
        let (tail, last) = Tail::open(&log_path(&self.home, LogOf::Process(name), &self.service), lines)?;
        Ok((last, Box::new(tail)))
    }
}

impl FollowedLog for Tail {
    fn more(&mut self) -> io::Result<String> {
        Self::more(self)
    }
}
