//! What `/proc` says about processes.

use std::collections::HashMap;
use std::fs;
use std::io;

/// The fields of `/proc/PID/stat` after the program's name, which may itself hold spaces and brackets.
fn stat(pid: i32) -> io::Result<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = text.rsplit_once(") ").ok_or(io::ErrorKind::InvalidData)?;
    Ok(rest.split_whitespace().map(str::to_owned).collect())
}

fn field(pid: i32, index: usize) -> io::Result<u64> {
    let fields = stat(pid)?;
    let text = fields.get(index).ok_or(io::ErrorKind::InvalidData)?;
    text.parse().map_err(|_| io::ErrorKind::InvalidData.into())
}

/// When the process started, in ticks since the machine did.
pub(super) fn start_time(pid: i32) -> io::Result<u64> {
    field(pid, 19)
}

/// Whether it has ended and nobody has waited for it.
pub(super) fn is_zombie(pid: i32) -> bool {
    stat(pid).is_ok_and(|fields| fields.first().is_some_and(|state| state == "Z" || state == "X"))
}

/// Every descendant of a process.
pub(super) fn descendants(ancestor: i32) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        if let Ok(parent) = field(pid, 1) {
            children.entry(parent as i32).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut open = vec![ancestor];
    while let Some(pid) = open.pop() {
        for &child in children.get(&pid).into_iter().flatten() {
            found.push(child);
            open.push(child);
        }
    }
    found
}

/// Memory of their own that the descendants of a process hold: not the pages of files, which the kernel
/// can drop. Pages that a fork shares are counted once for each side, which errs on the safe side.
pub(super) fn resident_bytes(ancestor: i32) -> u64 {
    let own_pages = |pid: i32| -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let mut fields = text.split_whitespace().skip(1).map_while(|field| field.parse::<u64>().ok());
        Some(fields.next()?.saturating_sub(fields.next()?))
    };
    let page = rustix::param::page_size() as u64;
    descendants(ancestor).into_iter().filter_map(own_pages).sum::<u64>() * page
}
