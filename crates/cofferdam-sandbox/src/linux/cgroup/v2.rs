//! Control groups, version 2: one hierarchy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cofferdam_core::CgroupFact;

use super::{Hits, counter, group_folder, is_writable, mount_point, read_number};
use crate::linux::plan::{CgroupLimits, CgroupPlan};
use crate::linux::system::SYSTEMD_RUN;

const PERIOD_US: u64 = 100_000;
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "pids"];

/// Looks from our own group upwards for one that we may write and that passes its controllers on. A
/// process can be moved only by who may write the common ancestor, which is the group found.
pub(super) fn locate(own: &str, mounts: &str, name: &str) -> Result<CgroupPlan, String> {
    let mount = mount_point(mounts, "cgroup2", None).ok_or("no cgroup v2 hierarchy")?;
    let group =
        own.lines().find_map(|line| line.strip_prefix("0::")).ok_or("this process is in no cgroup v2")?;
    let own = group_folder(&mount, group);
    let found = own
        .ancestors()
        .take_while(|folder| folder.starts_with(&mount.0))
        .find(|folder| is_writable(folder) && is_writable(&folder.join("cgroup.procs")) && passes_on(folder));
    match found {
        Some(folder) => Ok(CgroupPlan::V2 { path: folder.join(name) }),
        None => Err("no cgroup v2 with cpu, memory and pids is delegated to us".to_owned()),
    }
}

fn passes_on(folder: &Path) -> bool {
    let enabled = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
    CONTROLLERS.iter().all(|name| enabled.split_whitespace().any(|word| word == *name))
}

pub(super) fn create(path: &Path, limits: &CgroupLimits) -> io::Result<()> {
    fs::create_dir(path)?;
    for (file, value) in settings(limits) {
        match fs::write(path.join(file), value) {
            // A kernel without swap accounting has no such file, and no swap that we could limit.
            Err(error) if file == "memory.swap.max" && error.kind() == io::ErrorKind::NotFound => {}
            written => written?,
        }
    }
    Ok(())
}

fn settings(limits: &CgroupLimits) -> [(&'static str, String); 4] {
    let quota = (PERIOD_US * u64::from(limits.cpus_milli) / 1000).max(1000);
    [
        ("memory.max", limits.memory_bytes.to_string()),
        ("memory.swap.max", "0".to_owned()),
        ("pids.max", limits.pids.to_string()),
        ("cpu.max", format!("{quota} {PERIOD_US}")),
    ]
}

pub(super) fn read_back(path: &Path) -> io::Result<CgroupFact> {
    Ok(CgroupFact {
        version: 2,
        path: path.display().to_string(),
        // `max` does not parse as a number: no limit.
        memory_bytes: read_number(&path.join("memory.max"))?,
        cpus_milli: parse_cpu_max(&fs::read_to_string(path.join("cpu.max"))?),
        pids: read_number(&path.join("pids.max"))?,
    })
}

fn parse_cpu_max(text: &str) -> Option<u32> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    u32::try_from(quota * 1000 / period.max(1)).ok()
}

pub(super) fn hits(path: &Path) -> Hits {
    Hits {
        oom_kills: counter(&path.join("memory.events"), "oom_kill "),
        pids_refused: counter(&path.join("pids.events"), "max "),
    }
}

/// The group that this process is in.
pub(super) fn own_folder() -> io::Result<PathBuf> {
    let own = fs::read_to_string("/proc/self/cgroup")?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let mount = mount_point(&mounts, "cgroup2", None).ok_or(io::ErrorKind::NotFound)?;
    let group = own.lines().find_map(|line| line.strip_prefix("0::")).ok_or(io::ErrorKind::NotFound)?;
    Ok(group_folder(&mount, group))
}

/// The command that starts a program in a scope of the user's systemd with these limits. An ordinary
/// user's own group is not delegated on a desktop; the user's systemd is who may make one.
pub(in crate::linux) fn systemd_scope(name: &str, limits: &CgroupLimits) -> Vec<String> {
    let percent = u64::from(limits.cpus_milli).div_ceil(10).max(1);
    let properties = [
        format!("MemoryMax={}", limits.memory_bytes),
        "MemorySwapMax=0".to_owned(),
        format!("TasksMax={}", limits.pids),
        format!("CPUQuota={percent}%"),
        // The kernel ends one process; that the whole scope follows would hide who was to blame.
        "OOMPolicy=continue".to_owned(),
    ];
    let mut argv: Vec<String> =
        [SYSTEMD_RUN, "--user", "--scope", "--quiet", "--collect"].map(String::from).into();
    argv.push(format!("--unit={name}"));
    for property in properties {
        argv.extend(["-p".to_owned(), property]);
    }
    argv.push("--".to_owned());
    argv
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: CgroupLimits = CgroupLimits { memory_bytes: 2 << 30, cpus_milli: 1500, pids: 258 };

    #[test]
    fn a_group_that_passes_its_controllers_on_is_found_above_our_own() {
        let root = tempfile::tempdir().unwrap();
        let slice = root.path().join("user.slice");
        let scope = slice.join("a.scope");
        fs::create_dir_all(&scope).unwrap();
        for folder in [root.path(), &slice, &scope] {
            fs::write(folder.join("cgroup.procs"), "").unwrap();
            fs::write(folder.join("cgroup.subtree_control"), "").unwrap();
        }
        fs::write(slice.join("cgroup.subtree_control"), "cpu io memory pids\n").unwrap();
        let mounts = format!("30 24 0:26 / {} rw - cgroup2 cgroup2 rw\n", root.path().display());
        let found = locate("0::/user.slice/a.scope\n", &mounts, "x").unwrap();
        assert_eq!(found, CgroupPlan::V2 { path: slice.join("x") });
        fs::write(slice.join("cgroup.subtree_control"), "memory pids\n").unwrap();
        assert!(locate("0::/user.slice/a.scope\n", &mounts, "x").is_err());
    }

    #[test]
    fn limits_are_written_and_read_back_as_they_were_meant() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("x");
        create(&path, &LIMITS).unwrap();
        let fact = read_back(&path).unwrap();
        assert_eq!(fact.memory_bytes, Some(2 << 30));
        assert_eq!((fact.cpus_milli, fact.pids), (Some(1500), Some(258)));
        assert_eq!(fs::read_to_string(path.join("cpu.max")).unwrap(), "150000 100000");
    }

    #[test]
    fn a_group_without_limits_reads_back_as_unlimited() {
        assert_eq!(parse_cpu_max("max 100000\n"), None);
        assert_eq!(parse_cpu_max("50000 100000\n"), Some(500));
    }

    #[test]
    fn a_scope_of_systemd_carries_every_limit() {
        let argv = systemd_scope("cofferdam-x", &LIMITS);
        // By a bare name, a PATH with `.` in it would have the repository's own program started.
        assert!(argv[0].starts_with('/'), "{argv:?}");
        let argv = argv.join(" ");
        for part in
            ["--unit=cofferdam-x", "MemoryMax=2147483648", "TasksMax=258", "CPUQuota=150%", "MemorySwapMax=0"]
        {
            assert!(argv.contains(part), "{argv}");
        }
    }
}
