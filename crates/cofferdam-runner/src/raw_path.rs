//! Paths as JSON and as text. A file name on Linux is bytes; a repository may hold names that are not
//! UTF-8, and a name that is mangled on its way through JSON would name another file.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path that survives JSON byte for byte.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RawPath(pub PathBuf);

/// A text that [`escape`] never writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an escaped path")]
pub struct NotEscaped(String);

impl From<RawPath> for String {
    fn from(path: RawPath) -> String {
        escape(&path.0)
    }
}

impl TryFrom<String> for RawPath {
    type Error = NotEscaped;

    fn try_from(text: String) -> Result<Self, NotEscaped> {
        unescape(&text).map(Self).ok_or(NotEscaped(text))
    }
}

impl From<&Path> for RawPath {
    fn from(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl AsRef<Path> for RawPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// Writes a path as text: UTF-8 as it is, a backslash doubled, control characters and any other byte as
/// `\xHH`. Control characters are escaped so that a file name cannot move the cursor of a terminal.
#[must_use]
pub fn escape(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => text.push_str("\\\\"),
                c if c.is_ascii_control() => write_byte(&mut text, c as u8),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|&byte| write_byte(&mut text, byte));
    }
    text
}

fn write_byte(text: &mut String, byte: u8) {
    write!(text, "\\x{byte:02x}").expect("writing to a string cannot fail");
}

/// Reads what [`escape`] wrote.
#[must_use]
pub fn unescape(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest {
            [b'\\', tail @ ..] => {
                bytes.push(b'\\');
                rest = tail;
            }
            [b'x', high, low, tail @ ..] => {
                let digits = [*high, *low];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
                rest = tail;
            }
            _ => return None,
        }
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives() {
        let all: Vec<u8> = (1..=255).collect();
        let path = PathBuf::from(OsString::from_vec(all));
        assert_eq!(unescape(&escape(&path)), Some(path));
    }

    #[test]
    fn ordinary_names_stay_readable() {
        assert_eq!(escape(Path::new("src/grün.rs")), "src/grün.rs");
        assert_eq!(escape(Path::new("a\nb\\c\x1b[2J")), "a\\x0ab\\\\c\\x1b[2J");
    }
}
