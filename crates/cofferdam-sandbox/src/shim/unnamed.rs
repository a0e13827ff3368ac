//! Files without a name: removed while a process still holds them. They take as much of the disk as any
//! other, and a walk over folders does not see them. The attack: open, unlink, and write until the host's
//! disk is full.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::processes::descendants;

/// A file, by its device and number.
type File = (u64, u64);

/// Bytes of files without a name that the descendants of a process have open or mapped.
pub(super) fn bytes(ancestor: i32) -> u64 {
    let mut found: HashMap<File, u64> = HashMap::new();
    for pid in descendants(ancestor) {
        let memory = memory_devices(pid);
        for (file, bytes) in open_files(pid).chain(mapped_files(pid)) {
            if !memory.contains(&Some(file.0)) {
                let known = found.entry(file).or_default();
                *known = bytes.max(*known);
            }
        }
    }
    found.into_values().fold(0, u64::saturating_add)
}

/// The two file systems that are memory, and that the memory limit holds.
fn memory_devices(pid: i32) -> [Option<u64>; 2] {
    let shared = fs::metadata(format!("/proc/{pid}/root/dev/shm")).ok().map(|found| found.dev());
    let anonymous = rustix::fs::memfd_create("device", rustix::fs::MemfdFlags::CLOEXEC);
    [shared, anonymous.and_then(rustix::fs::fstat).ok().map(|stat| stat.st_dev)]
}

fn open_files(pid: i32) -> impl Iterator<Item = (File, u64)> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let found = fs::metadata(entry.path()).ok().filter(|found| found.is_file() && found.nlink() == 0)?;
        Some(((found.dev(), found.ino()), found.blocks().saturating_mul(512)))
    })
}

/// By the size of the mapping, which is the most that such a file can have been given through it.
fn mapped_files(pid: i32) -> impl Iterator<Item = (File, u64)> {
    let maps = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let lines = String::from_utf8_lossy(&maps).into_owned();
    lines.lines().filter_map(parse_mapping).collect::<Vec<_>>().into_iter()
}

/// `7f00-7f10 rw-s 00000000 08:01 123  /path (deleted)`. The name is the agent's to choose, so that
/// nothing is read from it but its last word, which the kernel adds.
fn parse_mapping(line: &str) -> Option<(File, u64)> {
    let mut fields = line.strip_suffix(" (deleted)")?.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let length = hex(end)?.checked_sub(hex(start)?)?;
    let (major, minor) = fields.nth(2)?.split_once(':')?;
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let device = rustix::fs::makedev(number(major)?, number(minor)?);
    Some(((device, fields.next()?.parse().ok()?), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_of_a_removed_file_is_read_and_no_other() {
        let line = "7f00000000-7f00100000 rw-s 00000000 08:01 123    /tmp/a b (deleted)";
        assert_eq!(parse_mapping(line), Some(((rustix::fs::makedev(8, 1), 123), 0x10_0000)));
        assert_eq!(parse_mapping(&line.replace(" (deleted)", "")), None);
    }

    #[test]
    fn a_file_that_was_removed_while_open_is_counted() {
        // The test's parent is an ancestor of the test.
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        let before = bytes(parent);
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        std::io::Write::write_all(&mut file, &vec![7; 8 << 20]).unwrap();
        file.sync_all().unwrap();
        assert!(bytes(parent) >= before + (4 << 20));
    }
}
