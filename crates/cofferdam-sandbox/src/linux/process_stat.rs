//! What `/proc` says about one process. Nothing of it is taken for text: a process chooses its own name, and one that is not
//! UTF-8 must not hide it.

use std::fs;
use std::io;

/// What `/proc/PID/stat` says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    /// Whether its first thread has ended. Others may go on.
    pub(crate) is_zombie: bool,
    pub(crate) parent: i32,
    pub(crate) threads: u64,
    /// When it started, in ticks since the machine did.
    pub(crate) started: u64,
}

impl Stat {
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        Self::parse(&fs::read(format!("/proc/{pid}/stat"))?).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Whether it has ended, and nobody has waited for it.
    pub(crate) fn has_ended(&self) -> bool {
        self.is_zombie && self.threads <= 1
    }

    /// The name may hold any byte, spaces and brackets too: the fields are those after the last bracket.
    fn parse(text: &[u8]) -> Option<Self> {
        let end_of_name = text.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(&text[end_of_name + 1..]).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        Some(Self {
            is_zombie: matches!(*fields.first()?, "Z" | "X"),
            parent: fields.get(1)?.parse().ok()?,
            threads: fields.get(17)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_not_taken_for_fields_whatever_it_holds() {
        let rest = "S 5 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 3 0 1234 0";
        let expected = Stat { is_zombie: false, parent: 5, threads: 3, started: 1234 };
        for name in [b"sh".as_slice(), b"\xff\xfe\xff", b"x) Z 1 (", b"a\nb"] {
            let line = [b"7 (", name, b") ", rest.as_bytes()].concat();
            assert_eq!(Stat::parse(&line), Some(expected));
        }
        assert_eq!(Stat::parse(b"7 (sh"), None);
    }
}
