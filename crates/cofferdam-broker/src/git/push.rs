//! What a push asks for, read before any of it is forwarded: git's pkt-lines up to the first flush.

use std::fmt::Write as _;

use bytes::{Bytes, BytesMut};

/// Commands of a push that is let through fit many times.
pub(super) const MAX_COMMANDS: usize = 64 << 10;
/// What a pkt-line is at most.
const MAX_LINE: usize = 65520;
/// What a line holds if it goes through the side band: room for its own length and the band's number.
const MAX_BAND: usize = 1000;
/// What a client may ask of the host beside its commands: how it answers, how the pack is written, who asks. Not here are options and
/// certificates of a push. Some hosts take orders by options: open a merge request, merge it once it is green.
const CAPABILITIES: [&str; 11] = [
    "report-status",
    "report-status-v2",
    "delete-refs",
    "side-band",
    "side-band-64k",
    "quiet",
    "atomic",
    "ofs-delta",
    "object-format",
    "agent",
    "session-id",
];

/// The commands of a push.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Commands {
    /// The references it changes, in order.
    refs: Vec<String>,
    deletes: bool,
    /// The first of what it asks for that is not let through.
    unknown: Option<String>,
    side_band: bool,
    report: bool,
}

/// Why a push cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PushFault {
    #[error("the push is malformed: {0}")]
    Malformed(&'static str),
    #[error("the push changes too many references at once")]
    TooMany,
}

/// Reads commands that arrive bit by bit. The attack: thousands of them, a byte at a time, and whoever begins anew with each
/// byte reads them for seconds.
#[derive(Default)]
pub(crate) struct Reader {
    commands: Commands,
    /// How many bytes were whole lines.
    read: usize,
}

impl Reader {
    /// The commands, once all of them are there. `bytes` is everything that has arrived so far.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<Option<Commands>, PushFault> {
        loop {
            let rest = bytes.get(self.read..).unwrap_or_default();
            let Some((length, after)) = rest.split_first_chunk::<4>() else { return partial(bytes) };
            let length = hexadecimal(length)?;
            if length == 0 {
                return Ok(Some(std::mem::take(&mut self.commands)));
            }
            if !(5..=MAX_LINE).contains(&length) {
                return Err(PushFault::Malformed("the length of a line"));
            }
            let Some((line, _)) = after.split_at_checked(length - 4) else { return partial(bytes) };
            self.commands.add(line)?;
            self.read += length;
        }
    }
}

fn partial(bytes: &[u8]) -> Result<Option<Commands>, PushFault> {
    if bytes.len() >= MAX_COMMANDS { Err(PushFault::TooMany) } else { Ok(None) }
}

fn hexadecimal(digits: &[u8; 4]) -> Result<usize, PushFault> {
    // Rust's parser also takes a sign.
    let text = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
    text.and_then(|text| usize::from_str_radix(text, 16).ok())
        .ok_or(PushFault::Malformed("the length of a line"))
}

impl Commands {
    fn add(&mut self, line: &[u8]) -> Result<(), PushFault> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let (command, capabilities) = match line.iter().position(|&b| b == 0) {
            Some(end) => (&line[..end], &line[end + 1..]),
            None => (line, [].as_slice()),
        };
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| PushFault::Malformed("a line is no text"));
        for capability in text(capabilities)?.split_ascii_whitespace() {
            // The attack: `push-options=1`, which git takes for `push-options`. It has the same name, whatever its value is.
            let name = capability.split_once('=').map_or(capability, |(name, _)| name);
            // What another reader takes for white space would begin another one.
            let is_plain = capability.bytes().all(|b| b.is_ascii_graphic());
            if !(is_plain && CAPABILITIES.contains(&name)) {
                self.unknown.get_or_insert_with(|| shown(name));
            }
            self.side_band |= name == "side-band-64k";
            self.report |= name == "report-status" || name == "report-status-v2";
        }
        let parts: Vec<&str> = text(command)?.splitn(3, ' ').collect();
        match parts[..] {
            ["shallow", id] if is_id(id) => {}
            [old, new, name] if is_id(old) && is_id(new) => {
                self.deletes |= new.bytes().all(|b| b == b'0');
                self.refs.push(name.to_owned());
            }
            // A signed push repeats its commands in a certificate, where they would not be seen.
            _ => return Err(PushFault::Malformed("a line is no command")),
        }
        Ok(())
    }

    /// Why this push is refused, if it is.
    pub(crate) fn fault(&self, branch: &str) -> Option<String> {
        let wanted = format!("refs/heads/{branch}");
        match self.refs.iter().find(|name| **name != wanted) {
            Some(other) => Some(format!("this run may push {wanted} and not {}", shown(other))),
            None if self.deletes => Some(format!("this run may not delete {wanted}")),
            None => self.unknown.as_deref().map(|unknown| match unknown {
                "push-options" => "this run may not push with options".to_owned(),
                other => format!("this run may not push with the capability {other}"),
            }),
        }
    }

    /// The references it changes, for people.
    pub(crate) fn names(&self) -> String {
        self.refs.join(" ")
    }

    /// An answer that git shows beside each reference; it shows nothing of an HTTP error's body. `None` if the
    /// client asked for no report.
    pub(crate) fn rejection(&self, reason: &str) -> Option<Bytes> {
        if !self.report {
            return None;
        }
        let reason: String = reason.chars().filter(|c| !c.is_control()).take(300).collect();
        let mut report = pkt_line(b"unpack ok\n").to_vec();
        for name in &self.refs {
            let mut line = String::new();
            let _ = writeln!(line, "ng {name} {reason}");
            report.extend_from_slice(&pkt_line(line.as_bytes()));
        }
        report.extend_from_slice(b"0000");
        if !self.side_band {
            return Some(report.into());
        }
        let mut answer = BytesMut::new();
        for piece in report.chunks(MAX_BAND) {
            answer.extend_from_slice(&pkt_line(&[&[1], piece].concat()));
        }
        answer.extend_from_slice(b"0000");
        Some(answer.freeze())
    }
}

/// What an agent made up, for people.
fn shown(text: &str) -> String {
    text.chars().take(100).flat_map(char::escape_default).collect()
}

fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn pkt_line(data: &[u8]) -> Bytes {
    let mut line = format!("{:04x}", data.len() + 4).into_bytes();
    line.extend_from_slice(data);
    line.into()
}

#[cfg(test)]
#[path = "push_tests.rs"]
mod tests;
