//! Files without a name: removed while a process still holds them, or never named at all. They take as much
//! of the disk as any other, and a walk over folders does not see them; or as much memory, and the sum of
//! what processes have for themselves does not show them. The attacks: open, unlink, and write until the
//! host's disk is full; fill a `memfd` or a shared mapping until its memory is.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use super::lines::{Line, each_line};
use super::processes::Process;
use super::survey::{Budget, Unfinished};

/// A file, by its device and number.
type File = (u64, u64);

/// What the kernel adds to the name of a file that has none any more.
const DELETED: &[u8; 10] = b" (deleted)";

/// Files without a name, each once, however many processes hold it.
#[derive(Default)]
pub(super) struct Found {
    files: HashMap<File, u64>,
    bytes: u64,
}

impl Found {
    /// How much all of them take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn add(&mut self, file: File, bytes: u64, budget: &mut Budget) -> Result<(), Unfinished> {
        if let Some(known) = self.files.get_mut(&file) {
            self.bytes = self.bytes.saturating_add(bytes.saturating_sub(*known));
            *known = bytes.max(*known);
            return Ok(());
        }
        budget.file()?;
        self.bytes = self.bytes.saturating_add(bytes);
        self.files.insert(file, bytes);
        Ok(())
    }
}

/// Adds what processes have open or mapped on the disk.
pub(super) fn add_disk(
    processes: &[Process],
    found: &mut Found,
    budget: &mut Budget,
) -> Result<(), Unfinished> {
    let memory = memory_devices(processes);
    let on_disk = |file: File| !memory.contains(&Some(file.0));
    // First what is cheap to look at, so that nothing hides behind mappings that take long.
    for process in processes {
        each_open_file(
            process,
            budget,
            |file, bytes, budget| {
                if on_disk(file) { found.add(file, bytes, budget) } else { Ok(()) }
            },
        )?;
    }
    for folder in processes.iter().filter_map(Process::with_memory) {
        each_line(&format!("{folder}/maps"), budget, |line, budget| match parse_mapping(line) {
            Some((file, bytes)) if on_disk(file) => found.add(file, bytes, budget),
            _ => Ok(()),
        })?;
    }
    Ok(())
}

/// Adds what processes have open in memory.
pub(super) fn add_open_memory(
    processes: &[Process],
    found: &mut Found,
    budget: &mut Budget,
) -> Result<(), Unfinished> {
    let memory = memory_devices(processes);
    for process in processes {
        each_open_file(process, budget, |file, bytes, budget| {
            if memory.contains(&Some(file.0)) { found.add(file, bytes, budget) } else { Ok(()) }
        })?;
    }
    Ok(())
}

/// Memory that processes share with each other or with a file in memory, counted for each of them: more than there is, and
/// quickly known.
pub(super) fn most_shared_memory(processes: &[Process], budget: &mut Budget) -> Result<u64, Unfinished> {
    let mut most: u64 = 0;
    for folder in processes.iter().filter_map(Process::with_memory) {
        each_line(&format!("{folder}/status"), budget, |line, _| {
            if line.head().starts_with(b"RssShmem:") {
                most = most.saturating_add(parse_kib(line).unwrap_or(0));
            }
            Ok(())
        })?;
    }
    Ok(most)
}

/// Adds what is in memory of each mapping that processes share and no disk backs. Slow.
pub(super) fn add_shared_memory(
    processes: &[Process],
    found: &mut Found,
    budget: &mut Budget,
) -> Result<(), Unfinished> {
    for folder in processes.iter().filter_map(Process::with_memory) {
        let mut shared = None;
        each_line(&format!("{folder}/smaps"), budget, |line, budget| {
            // A mapping begins with its address, what is known of it with a capital letter.
            if line.head().first().is_some_and(|first| first.is_ascii_digit() || first.is_ascii_lowercase()) {
                let is_shared = line.words().nth(1).is_some_and(|access| access.ends_with('s'));
                shared = parse_file(line).filter(|_| is_shared);
            } else if line.head().starts_with(b"Rss:")
                && let (Some(file), Some(bytes)) = (shared.take(), parse_kib(line))
            {
                found.add(file, bytes, budget)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The two file systems that are memory, and that the memory limit holds. All processes of a sandbox see the same files.
fn memory_devices(processes: &[Process]) -> [Option<u64>; 2] {
    let shared = |process: &Process| fs::metadata(format!("/proc/{}/root/dev/shm", process.pid)).ok();
    let shared = processes.iter().find_map(shared).map(|found| found.dev());
    let anonymous = rustix::fs::memfd_create("device", rustix::fs::MemfdFlags::CLOEXEC);
    [shared, anonymous.and_then(rustix::fs::fstat).ok().map(|stat| stat.st_dev)]
}

fn each_open_file(
    process: &Process,
    budget: &mut Budget,
    mut each: impl FnMut(File, u64, &mut Budget) -> Result<(), Unfinished>,
) -> Result<(), Unfinished> {
    for thread in process.file_tables() {
        let entries = fs::read_dir(format!("/proc/{}/task/{thread}/fd", process.pid));
        for entry in entries.into_iter().flatten().flatten() {
            budget.step()?;
            let Ok(found) = fs::metadata(entry.path()) else { continue };
            if found.is_file() && found.nlink() == 0 {
                each((found.dev(), found.ino()), found.blocks().saturating_mul(512), budget)?;
            }
        }
    }
    Ok(())
}

/// `7f00-7f10 rw-s 00000000 08:01 123  /path (deleted)`, by the size of the mapping, which is the most that such a file can have
/// been given through it. The name is the agent's to choose, so that nothing is read from it but its last word, which the
/// kernel adds.
fn parse_mapping(line: &Line) -> Option<(File, u64)> {
    if !line.ends_with(DELETED) {
        return None;
    }
    let (start, end) = line.words().next()?.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    Some((parse_file(line)?, hex(end)?.checked_sub(hex(start)?)?))
}

/// The device and number in the same line.
fn parse_file(line: &Line) -> Option<File> {
    let mut fields = line.words().skip(3);
    let (major, minor) = fields.next()?.split_once(':')?;
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    Some((rustix::fs::makedev(number(major)?, number(minor)?), fields.next()?.parse().ok()?))
}

/// `Rss:   12 kB`, in bytes.
fn parse_kib(line: &Line) -> Option<u64> {
    line.words().nth(1)?.parse::<u64>().ok()?.checked_mul(1 << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_of_a_removed_file_is_read_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("maps");
        let line = "7f00000000-7f00100000 rw-s 00000000 08:01 123    /tmp/a b (deleted)";
        fs::write(&path, format!("{line}\n{}\n", line.replace(" (deleted)", ""))).unwrap();
        let mut found = Vec::new();
        let keep = |line: &Line, _: &mut Budget| {
            found.push(parse_mapping(line));
            Ok(())
        };
        each_line(path.to_str().unwrap(), &mut Budget::of_a_look(), keep).unwrap();
        assert_eq!(found, [Some(((rustix::fs::makedev(8, 1), 123), 0x10_0000)), None]);
    }

    /// What this process holds on the disk without a name.
    fn held() -> u64 {
        // Its parent is an ancestor of it.
        let parent = rustix::process::getppid().unwrap().as_raw_nonzero().get();
        let own = std::process::id().cast_signed();
        let mut budget = Budget::of_a_look();
        let mut processes = Process::below(parent, &mut budget).unwrap();
        processes.retain(|process| process.pid == own);
        let mut found = Found::default();
        add_disk(&processes, &mut found, &mut budget).unwrap();
        found.bytes()
    }

    #[test]
    fn a_file_that_was_removed_while_open_is_counted() {
        let before = held();
        let mut file = tempfile::tempfile_in("/var/tmp").unwrap();
        std::io::Write::write_all(&mut file, &vec![7; 8 << 20]).unwrap();
        file.sync_all().unwrap();
        assert!(held() >= before + (4 << 20));
    }

    #[test]
    fn a_file_that_several_hold_is_counted_once() {
        let (mut found, mut budget) = (Found::default(), Budget::of_a_look());
        for bytes in [10, 30, 20] {
            found.add((1, 2), bytes, &mut budget).unwrap();
        }
        assert_eq!(found.bytes(), 30);
        found.add((1, 3), 5, &mut budget).unwrap();
        assert_eq!(found.bytes(), 35);
    }
}
