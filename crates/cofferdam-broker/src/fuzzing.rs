//! The parts that read what strangers write, for the fuzzers. Not an interface.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncRead;

use crate::git::push;
use crate::http1::HeadGuard;

pub use crate::model::meter::{Form, Meter, Reading};
pub use crate::model::request::{Payload, Rebuilt, Rules, check};
pub use crate::model::{Endpoint, Refusal, Usage};

/// A stream that lets checked heads through.
pub fn guarded(stream: impl AsyncRead + Unpin, head_bytes: usize) -> impl AsyncRead + Unpin {
    HeadGuard::new(stream, head_bytes, Duration::from_secs(3600))
}

/// What became of the beginning of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// It cannot be read.
    Malformed(String),
    /// There is more to come.
    Partial,
    /// It was read.
    Read {
        /// Which references it changes, with spaces between them.
        names: String,
        /// Why it is refused, if it is.
        fault: Option<String>,
        /// What a client is told that asked for a report.
        rejection: Option<Bytes>,
    },
}

/// Reads the beginning of a push to this branch.
#[must_use]
pub fn read_push(bytes: &[u8], branch: &str) -> Push {
    match push::Reader::default().read(bytes) {
        Err(fault) => Push::Malformed(fault.to_string()),
        Ok(None) => Push::Partial,
        Ok(Some(commands)) => {
            let fault = commands.fault(branch);
            let rejection = commands.rejection(fault.as_deref().unwrap_or("no"));
            Push::Read { names: commands.names(), fault, rejection }
        }
    }
}
