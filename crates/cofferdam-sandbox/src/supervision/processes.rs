//! What `/proc` says about processes. Nothing of it is taken for text: a process chooses its own name, and one that is not
//! UTF-8 must not hide it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use super::survey::{Budget, Unfinished};
use crate::linux::{ProcessRecord, Stat, share_open_files};

/// Every descendant of a process.
pub(super) fn descendants(ancestor: i32) -> Vec<ProcessRecord> {
    let all = numbers_in("/proc").filter_map(|pid| Some((pid, Stat::of(pid).ok()?))).collect();
    let record = |(pid, stat): (i32, Stat)| ProcessRecord { pid, started: stat.started };
    below(ancestor, all).into_iter().map(record).collect()
}

/// Those of all processes that descend from one.
fn below(ancestor: i32, mut all: HashMap<i32, Stat>) -> Vec<(i32, Stat)> {
    adopt_orphans(&mut all);
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (pid, stat) in &all {
        children.entry(stat.parent).or_default().push(*pid);
    }
    let mut found = Vec::new();
    let mut open = vec![ancestor];
    while let Some(pid) = open.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            found.push((child, all[&child]));
            open.push(child);
        }
    }
    found
}

/// A process whose parent ended while we looked has another by now. It would be nobody's descendant otherwise, and processes
/// that keep starting each other could stay out of sight.
fn adopt_orphans(all: &mut HashMap<i32, Stat>) {
    let is_orphan = |stat: &Stat| stat.parent != 0 && !all.contains_key(&stat.parent);
    let orphans: Vec<i32> = all.iter().filter(|(_, stat)| is_orphan(stat)).map(|(pid, _)| *pid).collect();
    for pid in orphans {
        match Stat::of(pid) {
            Ok(stat) => all.insert(pid, stat),
            Err(_) => all.remove(&pid),
        };
    }
}

/// The names in a folder of `/proc` that are numbers.
fn numbers_in(folder: impl AsRef<Path>) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process that is looked at, with its threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: i32,
    threads: Vec<i32>,
}

impl Process {
    /// Every descendant of a process.
    pub(super) fn below(ancestor: i32, budget: &mut Budget) -> Result<Vec<Self>, Unfinished> {
        let mut all = HashMap::new();
        for pid in numbers_in("/proc") {
            budget.step()?;
            all.extend(Stat::of(pid).ok().map(|stat| (pid, stat)));
        }
        below(ancestor, all).into_iter().map(|(pid, stat)| Self::of(pid, &stat, budget)).collect()
    }

    fn of(pid: i32, stat: &Stat, budget: &mut Budget) -> Result<Self, Unfinished> {
        let alone = stat.threads == 1 && !stat.is_zombie;
        let threads = if alone { vec![pid] } else { numbers_in(format!("/proc/{pid}/task")).collect() };
        budget.threads(threads.len())?;
        Ok(Self { pid, threads })
    }

    /// A thread for each table of open files. Most processes have one; a thread may have its own, whose files the process's
    /// `/proc/PID/fd` does not list, and neither does it list any once the first thread has ended.
    pub(super) fn file_tables(&self) -> Vec<i32> {
        /// With how many of the tables found so far a thread's is compared. More cost time, fewer cost looking twice.
        const COMPARED: usize = 4;
        let mut tables: Vec<i32> = Vec::new();
        for thread in &self.threads {
            if !tables.iter().take(COMPARED).any(|known| share_open_files(*known, *thread)) {
                tables.push(*thread);
            }
        }
        tables
    }

    /// The folder of a thread that still has the process's memory: all that live share it, and a first thread that has
    /// ended has none.
    pub(super) fn with_memory(&self) -> Option<String> {
        let mut folders = self.threads.iter().map(|thread| format!("/proc/{}/task/{thread}", self.pid));
        folders.find(|folder| pages(folder).is_some_and(|pages| pages.all > 0))
    }
}

/// The beginning of `statm`, in pages.
struct Pages {
    all: u64,
    resident: u64,
    /// Of files, which the kernel can drop, and of shared memory.
    shared: u64,
}

fn pages(folder: &str) -> Option<Pages> {
    let text = fs::read_to_string(format!("{folder}/statm")).ok()?;
    let mut fields = text.split_ascii_whitespace().map_while(|field| u64::from_str(field).ok());
    Some(Pages { all: fields.next()?, resident: fields.next()?, shared: fields.next()? })
}

/// Memory of their own that processes hold: not the pages of files, which the kernel can drop. Pages that a fork shares are
/// counted once for each side, which errs on the safe side.
pub(super) fn resident_bytes(processes: &[Process], budget: &Budget) -> Result<u64, Unfinished> {
    let mut own: u64 = 0;
    for folder in processes.iter().filter_map(Process::with_memory) {
        budget.step()?;
        own =
            own.saturating_add(pages(&folder).map_or(0, |pages| pages.resident.saturating_sub(pages.shared)));
    }
    Ok(own.saturating_mul(rustix::param::page_size() as u64))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// A shell with a name that is not UTF-8, once it has that name. It ends with its stdin.
    fn strangely_named() -> Child {
        let script = "printf '\\377\\376\\377' > /proc/$$/comm; echo ready; read -r _";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        child
    }

    #[test]
    fn a_process_whose_name_is_not_text_is_a_descendant_like_any_other() {
        let mut child = strangely_named();
        let pid = child.id().cast_signed();
        let name = fs::read(format!("/proc/{pid}/comm")).unwrap();
        assert_eq!(name, b"\xff\xfe\xff\n");
        let own = std::process::id().cast_signed();
        assert!(descendants(own).contains(&ProcessRecord::of(pid).unwrap()));
        let mut budget = Budget::of_a_look();
        let mut found = Process::below(own, &mut budget).unwrap();
        found.retain(|process| process.pid == pid);
        assert!(resident_bytes(&found, &budget).unwrap() > 0);
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_process_with_one_table_of_files_is_looked_into_once() {
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let _ = wait.recv();
        });
        let own = std::process::id().cast_signed();
        let process = Process::of(own, &Stat::of(own).unwrap(), &mut Budget::of_a_look()).unwrap();
        assert!(process.threads.len() > 1, "{process:?}");
        // Where the kernel does not compare, every thread is looked into.
        if share_open_files(own, own) {
            assert_eq!(process.file_tables().len(), 1);
        }
        drop(end);
        thread.join().unwrap();
    }
}
