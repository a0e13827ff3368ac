//! Who tries something out, written on what is tried: so that whoever finds it later knows whether it is still wanted.

use std::fmt;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::str::FromStr;

use crate::linux::ProcessRecord;

/// A process that tries something, by what nobody else on this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asker {
    /// Its numbers mean something in this namespace only.
    namespace: u64,
    process: ProcessRecord,
}

impl Asker {
    /// This process.
    pub(crate) fn own() -> io::Result<Self> {
        Ok(Self { namespace: own_namespace()?, process: ProcessRecord::own()? })
    }

    /// Whether it has ended; `None` if that cannot be seen from here.
    pub(crate) fn has_ended(self) -> Option<bool> {
        let is_seen = own_namespace().is_ok_and(|own| own == self.namespace);
        is_seen.then(|| !self.process.is_alive())
    }
}

fn own_namespace() -> io::Result<u64> {
    Ok(std::fs::metadata("/proc/self/ns/pid")?.ino())
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{:x}.{:x}", self.namespace, self.process.pid, self.process.started)
    }
}

impl FromStr for Asker {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().unwrap_or_default();
        let namespace = u64::from_str_radix(part(), 16)?;
        let pid = i32::from_str_radix(part(), 16)?;
        let started = u64::from_str_radix(part(), 16)?;
        Ok(Self { namespace, process: ProcessRecord { pid, started } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asker_is_read_as_it_was_written_and_known_to_live_or_not() {
        let own = Asker::own().unwrap();
        assert_eq!(own.to_string().parse(), Ok(own));
        assert_eq!(own.has_ended(), Some(false));
        let earlier = ProcessRecord { started: own.process.started + 1, ..own.process };
        assert_eq!(
            Asker { process: earlier, ..own }.has_ended(),
            Some(true),
            "another process of that number"
        );
        assert_eq!(Asker { namespace: own.namespace + 1, ..own }.has_ended(), None);
        for text in ["", "1", "1.2", "1.2.x", "..", "1.2.3.4"] {
            assert!(text.parse::<Asker>().is_err(), "{text}");
        }
    }
}
