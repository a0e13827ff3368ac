//! Files without a name: removed while a process still holds them, or never named at all. They take as much
//! of the disk as any other, and a walk over folders does not see them; or as much memory, and the sum of
//! what processes have for themselves does not show them. The attacks: open, unlink, and write until the
//! host's disk is full; fill a `memfd` or a shared mapping until its memory is.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::processes::descendants;

/// A file, by its device and number.
type File = (u64, u64);

/// Bytes on the disk of files without a name that the descendants of a process have open or mapped.
pub(super) fn disk_bytes(ancestor: i32) -> u64 {
    let mut found = Found::default();
    for pid in descendants(ancestor) {
        let memory = memory_devices(pid);
        let files = open_files(pid).chain(mapped_files(pid));
        files.filter(|(file, _)| !memory.contains(&Some(file.0))).for_each(|one| found.add(one));
    }
    found.sum()
}

/// Bytes in memory of such files, and of memory that processes share.
pub(super) fn memory_bytes(ancestor: i32) -> u64 {
    let mut found = Found::default();
    for pid in descendants(ancestor) {
        let memory = memory_devices(pid);
        open_files(pid).filter(|(file, _)| memory.contains(&Some(file.0))).for_each(|one| found.add(one));
        shared_memory(pid).into_iter().for_each(|one| found.add(one));
    }
    found.sum()
}

/// Each file once, however many processes hold it.
#[derive(Default)]
struct Found(HashMap<File, u64>);

impl Found {
    fn add(&mut self, (file, bytes): (File, u64)) {
        let known = self.0.entry(file).or_default();
        *known = bytes.max(*known);
    }

    fn sum(self) -> u64 {
        self.0.into_values().fold(0, u64::saturating_add)
    }
}

/// Below this a process is not looked at mapping by mapping, which is slow.
const LITTLE_SHARED_KIB: u64 = 8 << 10;

/// What is in memory of each mapping that a process shares and no disk backs.
fn shared_memory(pid: i32) -> Vec<(File, u64)> {
    let kib = |line: &str| line.split_ascii_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok());
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let shared = status.lines().find(|line| line.starts_with("RssShmem:")).and_then(kib).unwrap_or(0);
    if shared < LITTLE_SHARED_KIB {
        return Vec::new();
    }
    let mappings = fs::read(format!("/proc/{pid}/smaps")).unwrap_or_default();
    let (mut found, mut file) = (Vec::new(), None);
    for line in String::from_utf8_lossy(&mappings).lines() {
        if line.starts_with("Rss:") {
            found.extend(file.take().zip(kib(line)).map(|(file, kib): (File, u64)| (file, kib << 10)));
        } else if line.as_bytes().first().is_some_and(|&b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase()) {
            let shared = line.split_once(' ').is_some_and(|(_, rest)| rest.as_bytes().get(3) == Some(&b's'));
            file = parse_file(line).filter(|_| shared);
        }
    }
    found
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
    let line = line.strip_suffix(" (deleted)")?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((parse_file(line)?, hex(end)?.checked_sub(hex(start)?)?))
}

/// The device and number in the same line.
fn parse_file(line: &str) -> Option<File> {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let (major, minor) = fields.next()?.split_once(':')?;
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    Some((rustix::fs::makedev(number(major)?, number(minor)?), fields.next()?.parse().ok()?))
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
        let before = disk_bytes(parent);
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        std::io::Write::write_all(&mut file, &vec![7; 8 << 20]).unwrap();
        file.sync_all().unwrap();
        assert!(disk_bytes(parent) >= before + (4 << 20));
    }
}
