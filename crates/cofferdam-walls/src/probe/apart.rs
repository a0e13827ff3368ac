//! How this process is set apart, as far as it can see that of itself.
//!
//! A container's engine may hide its processes from us, or run them on another kernel. What is read here is read by
//! our own process before the agent exists, so the outside may take it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cofferdam_core::{CgroupFact, InsideApart};

const NAMESPACES: [&str; 7] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];
const CGROUP: &str = "/sys/fs/cgroup";
/// Larger than any machine's memory: how version 1 spells "no limit".
const UNLIMITED: u64 = 1 << 62;

pub(super) fn measure(uid: u32) -> InsideApart {
    InsideApart {
        boot_id: text("/proc/sys/kernel/random/boot_id"),
        namespaces: namespaces(),
        outer_uid: text("/proc/self/uid_map").and_then(|map| outer(&map, uid)),
        cgroup: cgroup(Path::new(CGROUP)),
    }
}

fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn namespaces() -> BTreeMap<String, u64> {
    let number = |kind: &str| -> Option<u64> {
        let link = fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
        link.to_str()?.trim_end_matches(']').rsplit('[').next()?.parse().ok()
    };
    NAMESPACES.into_iter().filter_map(|kind| Some((kind.to_owned(), number(kind)?))).collect()
}

/// What a user id is outside, from the text of a map: `first-inside first-outside count` a line.
fn outer(map: &str, uid: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(|number| number.parse::<u32>().ok());
        let (inside, outside, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let offset = uid.checked_sub(inside).filter(|offset| *offset < count)?;
        outside.checked_add(offset)
    })
}

/// The limits at the root of what is mounted: in a group namespace, or behind an engine's own mount, that is the
/// sandbox's own group.
fn cgroup(root: &Path) -> Option<CgroupFact> {
    let number = |path: &str| text(root.join(path))?.parse::<u64>().ok();
    if root.join("cgroup.controllers").exists() {
        return Some(CgroupFact {
            version: 2,
            path: root.display().to_string(),
            memory_bytes: number("memory.max"),
            cpus_milli: text(root.join("cpu.max")).as_deref().and_then(quota),
            pids: number("pids.max"),
        });
    }
    if !root.join("memory").is_dir() {
        return None;
    }
    let cpu = number("cpu/cpu.cfs_quota_us").zip(number("cpu/cpu.cfs_period_us"));
    Some(CgroupFact {
        version: 1,
        path: root.display().to_string(),
        memory_bytes: number("memory/memory.limit_in_bytes").filter(|bytes| *bytes < UNLIMITED),
        // No quota is -1, and does not parse as a number.
        cpus_milli: cpu.and_then(|(quota, period)| milli(quota, period)),
        pids: number("pids/pids.max"),
    })
}

/// `50000 100000`, or `max 100000` without a limit.
fn quota(text: &str) -> Option<u32> {
    let (quota, period) = text.split_once(' ')?;
    milli(quota.parse().ok()?, period.parse().ok()?)
}

fn milli(quota: u64, period: u64) -> Option<u32> {
    u32::try_from(quota.checked_mul(1000)?.checked_div(period)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(files: &[(&str, &str)]) -> Option<CgroupFact> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }
        cgroup(root.path())
    }

    #[test]
    fn limits_are_read_in_either_version() {
        let second = group(&[
            ("cgroup.controllers", "cpu memory pids"),
            ("memory.max", "2147483648"),
            ("cpu.max", "50000 100000"),
            ("pids.max", "264"),
        ]);
        let first = group(&[
            ("memory/memory.limit_in_bytes", "2147483648"),
            ("cpu/cpu.cfs_quota_us", "50000"),
            ("cpu/cpu.cfs_period_us", "100000"),
            ("pids/pids.max", "264"),
        ]);
        for (fact, version) in [(second.unwrap(), 2), (first.unwrap(), 1)] {
            assert_eq!(fact.version, version);
            assert_eq!(
                (fact.memory_bytes, fact.cpus_milli, fact.pids),
                (Some(2 << 30), Some(500), Some(264))
            );
        }
    }

    #[test]
    fn no_limit_is_told_apart_from_one() {
        let second = group(&[
            ("cgroup.controllers", ""),
            ("memory.max", "max"),
            ("cpu.max", "max 100000"),
            ("pids.max", "max"),
        ]);
        let first = group(&[
            ("memory/memory.limit_in_bytes", "9223372036854771712"),
            ("cpu/cpu.cfs_quota_us", "-1"),
            ("cpu/cpu.cfs_period_us", "100000"),
            ("pids/pids.max", "max"),
        ]);
        for fact in [second.unwrap(), first.unwrap()] {
            assert_eq!((fact.memory_bytes, fact.cpus_milli, fact.pids), (None, None, None));
        }
        assert_eq!(group(&[]), None);
    }

    #[test]
    fn an_id_is_found_in_the_map_or_unknown() {
        assert_eq!(outer("0 100000 65536", 1000), Some(101_000));
        assert_eq!(outer("0 1000 1\n1 100000 999\n1000 1001 1", 1000), Some(1001));
        assert_eq!(outer("0 100000 65536", 65536), None);
        assert_eq!(outer("0 0 4294967295", 0), Some(0));
    }
}
