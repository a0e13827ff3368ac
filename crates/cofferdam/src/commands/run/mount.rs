//! `--mount PATH[:ro|rw]`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// The path, and whether it may be written. Without an ending it is read-only: the safe reading of what was not said.
pub(super) fn split(text: &OsStr) -> (&OsStr, bool) {
    let bytes = text.as_bytes();
    let endings = [(&b":ro"[..], false), (b":rw", true)];
    endings
        .into_iter()
        .find_map(|(ending, writable)| Some((OsStr::from_bytes(bytes.strip_suffix(ending)?), writable)))
        .unwrap_or((text, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_only_unless_it_says_otherwise() {
        for (text, path, writable) in [
            ("data", "data", false),
            ("data:ro", "data", false),
            ("data:rw", "data", true),
            ("a:b", "a:b", false),
        ] {
            assert_eq!(split(OsStr::new(text)), (OsStr::new(path), writable));
        }
    }
}
