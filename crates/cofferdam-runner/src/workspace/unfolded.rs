//! What a commit takes on the disk, before anything of it is written.
//!
//! The attack: a few bytes in a pack are a blob of terabytes of zeros, or a dozen folders that hold each other ten times, and
//! whoever checks that out fills the disk, or never ends.

use std::io::{self, BufRead, BufReader, Read};
use std::process::Stdio;

use super::refs::Bare;
use crate::pristine_git;

/// What an entry takes at least, with its name and its place in a folder.
const LEAST: u64 = 4096;
/// What is before an entry's name is shorter than this, whoever made it: mode, kind, object and size.
const LONGEST_HEAD: u64 = 256;

/// Whether a commit's files and folders take no more than so many bytes.
pub(super) fn unfolds_within(bare: Bare<'_>, commit: &str, most_bytes: u64) -> io::Result<bool> {
    let mut command = pristine_git::command(bare.git, bare.path);
    // With the folders themselves, which may hold each other without a single file at the end.
    command.args(["ls-tree", "-r", "-t", "-l", "-z", commit]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let listed = child.stdout.take().expect("stdout was piped a line above");
    let left = left_of(most_bytes, &mut BufReader::new(listed));
    // It has ended, or nobody reads on.
    let _ = child.kill();
    child.wait()?;
    Ok(left?.is_some())
}

/// What is left of a number of bytes after all entries of a listing; `None` as soon as there is less than nothing.
fn left_of(most_bytes: u64, listed: &mut impl BufRead) -> io::Result<Option<u64>> {
    let mut left = most_bytes;
    let mut head = Vec::new();
    loop {
        head.clear();
        listed.by_ref().take(LONGEST_HEAD).read_until(b'\t', &mut head)?;
        if head.is_empty() {
            return Ok(Some(left));
        }
        // A name can be as long as its author likes, and is not kept.
        listed.skip_until(0)?;
        // Folders and submodules have a dash in its place.
        let size = head.trim_ascii_end().rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        let size = std::str::from_utf8(size).ok().and_then(|size| size.parse().ok()).unwrap_or(LEAST);
        match left.checked_sub(size.max(LEAST)) {
            Some(less) => left = less,
            None => return Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_counts_and_no_name_is_taken_for_a_size() {
        let listed =
            b"100644 blob 00aa      10\ta\t1 9\x00040000 tree 00bb       -\tb\x00100644 blob 00cc   10000\tc\0";
        let left = |most: u64| left_of(most, &mut &listed[..]).unwrap();
        assert_eq!(left(2 * LEAST + 10_000), Some(0));
        assert_eq!(left(2 * LEAST + 9_999), None);
    }

    #[test]
    fn a_size_that_is_no_number_of_ours_is_too_large_or_an_entry() {
        let listed = b"100644 blob 00aa 18446744073709551615\ta\0";
        assert_eq!(left_of(1 << 40, &mut &listed[..]).unwrap(), None);
    }
}
