//! Control groups, version 1: a hierarchy per controller.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cofferdam_core::CgroupFact;

use super::{Hits, counter, group_folder, is_writable, mount_point, read_number};
use crate::linux::plan::{CgroupLimits, CgroupPlan};

const PERIOD_US: u64 = 100_000;

/// Larger than any machine's memory: how version 1 spells "no limit".
const UNLIMITED: u64 = 1 << 62;

pub(super) fn locate(own: &str, mounts: &str, name: &str) -> Result<CgroupPlan, String> {
    let folder = |controller: &str| -> Result<PathBuf, String> {
        let mount = mount_point(mounts, "cgroup", Some(controller))
            .ok_or_else(|| format!("no cgroup v1 hierarchy for {controller}"))?;
        let group = own.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers.split(',').any(|c| c == controller).then_some(path)
        });
        let parent = group_folder(&mount, group.unwrap_or("/"));
        if is_writable(&parent) && is_writable(&parent.join("cgroup.procs")) {
            Ok(parent.join(name))
        } else {
            Err(format!("the cgroup v1 folder {} is not ours to write", parent.display()))
        }
    };
    Ok(CgroupPlan::V1 { memory: folder("memory")?, cpu: folder("cpu")?, pids: folder("pids")? })
}

pub(super) fn create(memory: &Path, cpu: &Path, pids: &Path, limits: &CgroupLimits) -> io::Result<()> {
    for folder in [memory, cpu, pids] {
        // Controllers that share a hierarchy share the folder.
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    fs::write(memory.join("memory.limit_in_bytes"), limits.memory_bytes.to_string())?;
    // Not there where swap is not accounted; then there is none to hide memory in, or it is not ours to
    // limit.
    let _ = fs::write(memory.join("memory.memsw.limit_in_bytes"), limits.memory_bytes.to_string());
    fs::write(cpu.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
    let quota = (PERIOD_US * u64::from(limits.cpus_milli) / 1000).max(1000);
    fs::write(cpu.join("cpu.cfs_quota_us"), quota.to_string())?;
    fs::write(pids.join("pids.max"), limits.pids.to_string())
}

pub(super) fn read_back(memory: &Path, cpu: &Path, pids: &Path) -> io::Result<CgroupFact> {
    let period = read_number(&cpu.join("cpu.cfs_period_us"))?.filter(|&p| p > 0);
    // -1 means no quota, and does not parse as a number.
    let quota = read_number(&cpu.join("cpu.cfs_quota_us"))?;
    let cpus = quota.zip(period).map(|(quota, period)| (quota * 1000 / period) as u32);
    Ok(CgroupFact {
        version: 1,
        path: memory.display().to_string(),
        memory_bytes: read_number(&memory.join("memory.limit_in_bytes"))?.filter(|&b| b < UNLIMITED),
        cpus_milli: cpus,
        pids: read_number(&pids.join("pids.max"))?,
    })
}

pub(super) fn hits(memory: &Path, pids: &Path) -> Hits {
    Hits {
        oom_kills: counter(&memory.join("memory.oom_control"), "oom_kill "),
        pids_refused: counter(&pids.join("pids.events"), "max "),
    }
}
