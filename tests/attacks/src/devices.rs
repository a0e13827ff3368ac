//! Device nodes, and the files by which the kernel is steered. They are opened and never written to,
//! since on a host without walls the opening succeeds.

use cofferdam_core::Wall;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::attempt::{Attempt, Attempted, Expect};
use crate::target::Target;

/// What a missing, a read-only and a root-owned control file answer.
const CLOSED: Expect = Expect::Errno(&[Errno::NOENT, Errno::ROFS, Errno::ACCESS]);

pub(crate) const ATTEMPTS: &[Attempt] = &[
    Attempt {
        name: "make_device_node",
        wall: Wall::Capabilities,
        expect: Expect::Errno(&[Errno::PERM]),
        may_be_absent: None,
        run: make_device_node,
    },
    Attempt {
        name: "open_host_device",
        wall: Wall::Mounts,
        expect: Expect::Errno(&[Errno::NOENT]),
        may_be_absent: None,
        run: open_host_device,
    },
    Attempt {
        name: "cgroup_release_agent",
        wall: Wall::Mounts,
        expect: CLOSED,
        may_be_absent: None,
        run: cgroup_release_agent,
    },
    Attempt {
        name: "cgroup_notify_on_release",
        wall: Wall::Mounts,
        expect: CLOSED,
        may_be_absent: None,
        run: cgroup_notify_on_release,
    },
    Attempt {
        name: "leave_cgroup",
        wall: Wall::Mounts,
        expect: CLOSED,
        may_be_absent: None,
        run: leave_cgroup,
    },
    Attempt {
        name: "kernel_facts",
        wall: Wall::Mounts,
        expect: Expect::Measured,
        may_be_absent: None,
        run: kernel_facts,
    },
    Attempt { name: "write_sys", wall: Wall::Mounts, expect: CLOSED, may_be_absent: None, run: write_sys },
    Attempt {
        name: "core_pattern",
        wall: Wall::User,
        expect: CLOSED,
        may_be_absent: None,
        run: core_pattern,
    },
    Attempt {
        name: "sysrq_trigger",
        wall: Wall::User,
        expect: CLOSED,
        may_be_absent: Some("kernels can be built without the magic key"),
        run: sysrq_trigger,
    },
    Attempt {
        name: "write_sysctl",
        wall: Wall::User,
        expect: CLOSED,
        may_be_absent: None,
        run: write_sysctl,
    },
];

/// Block devices, memory, the kernel's log and the doors to virtual machines, file systems and networks.
const DEVICES: [&str; 14] = [
    "/dev/sda",
    "/dev/vda",
    "/dev/nvme0n1",
    "/dev/xvda",
    "/dev/dm-0",
    "/dev/loop0",
    "/dev/loop-control",
    "/dev/mem",
    "/dev/kmem",
    "/dev/port",
    "/dev/kmsg",
    "/dev/kvm",
    "/dev/fuse",
    "/dev/net/tun",
];

/// The controllers of cgroup v1, and the root of v2.
const CGROUPS: [&str; 7] = [
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/unified",
    "/sys/fs/cgroup/memory",
    "/sys/fs/cgroup/pids",
    "/sys/fs/cgroup/cpu",
    "/sys/fs/cgroup/devices",
    "/sys/fs/cgroup/systemd",
];

fn open(path: &str, flags: OFlags) -> Result<(), Errno> {
    rustix::fs::open(path, flags | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty()).map(drop)
}

/// The first path that opens; otherwise the first error that is more than "not there".
fn open_any(paths: &[String], flags: OFlags) -> Attempted {
    let mut refused = (Errno::NOENT, "none is there".to_owned());
    for path in paths {
        match open(path, flags) {
            Ok(()) => return Attempted::Succeeded(format!("{path} opened")),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NXIO | Errno::NODEV) => {}
            Err(errno) if refused.0 == Errno::NOENT => refused = (errno, path.clone()),
            Err(_) => {}
        }
    }
    Attempted::Stopped(Some(refused.0), refused.1)
}

/// The machine's first disk, under a name of one's own.
fn make_device_node(target: &Target) -> Attempted {
    let node = target.workspace.join(".attack-device");
    let device = rustix::fs::makedev(254, 0);
    let made = rustix::fs::mknodat(CWD, &node, FileType::BlockDevice, Mode::from_raw_mode(0o600), device);
    let _ = std::fs::remove_file(&node);
    Attempted::by("mknod", made)
}

fn open_host_device(_: &Target) -> Attempted {
    open_any(&DEVICES.map(str::to_owned), OFlags::RDONLY)
}

/// The program named here is run by the host's kernel, as root, when a group empties. (Version 1 only;
/// where there is none, the group of the machine itself is the next best.)
fn cgroup_release_agent(_: &Target) -> Attempted {
    let agents = CGROUPS.map(|group| format!("{group}/release_agent"));
    match open_any(&agents, OFlags::WRONLY) {
        Attempted::Stopped(Some(Errno::NOENT), _) => {
            open_any(&CGROUPS.map(|group| format!("{group}/cgroup.subtree_control")), OFlags::WRONLY)
        }
        other => other,
    }
}

/// Without this switch of the own group the program above is never run.
fn cgroup_notify_on_release(_: &Target) -> Attempted {
    match open_any(&CGROUPS.map(|group| format!("{group}/notify_on_release")), OFlags::WRONLY) {
        Attempted::Stopped(Some(Errno::NOENT), _) => {
            open_any(&CGROUPS.map(|group| format!("{group}/cgroup.type")), OFlags::WRONLY)
        }
        other => other,
    }
}

/// Settings of the running kernel; one of them names a program that it runs as root.
fn write_sys(_: &Target) -> Attempted {
    let settings = ["kernel/uevent_helper", "kernel/rcu_expedited", "kernel/profiling", "power/state"];
    open_any(&settings.map(|setting| format!("/sys/{setting}")), OFlags::WRONLY)
}

/// A process that moves itself to the machine's own group has no limits left.
fn leave_cgroup(_: &Target) -> Attempted {
    open_any(&CGROUPS.map(|group| format!("{group}/cgroup.procs")), OFlags::WRONLY)
}

/// Files and folders in which the kernel tells of its memory, its timers, its hardware and the keys that users have.
const KERNEL_FACTS: [&str; 8] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
];

/// The kernel's own and not something that lies over it.
fn kernel_facts(_: &Target) -> Attempted {
    let is_own = |path: &&str| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = rustix::fs::open(*path, flags, Mode::empty());
        opened.and_then(rustix::fs::fstatfs).is_ok_and(|found| found.f_type == libc::PROC_SUPER_MAGIC)
    };
    let told: Vec<&str> = KERNEL_FACTS.into_iter().filter(is_own).collect();
    Attempted::measured(!told.is_empty(), format!("can be opened: {told:?}"))
}

/// The program named here is run by the host's kernel, as root, when a process crashes.
fn core_pattern(_: &Target) -> Attempted {
    Attempted::by("open of core_pattern", open("/proc/sys/kernel/core_pattern", OFlags::WRONLY))
}

/// One letter here reboots the machine.
fn sysrq_trigger(_: &Target) -> Attempted {
    match open("/proc/sysrq-trigger", OFlags::WRONLY) {
        Err(Errno::NOENT) => Attempted::NotPossible("this kernel has no magic key".to_owned()),
        other => Attempted::by("open of sysrq-trigger", other),
    }
}

/// Writes a setting back as it is. A process whose user is root on the host may do so without any
/// capability: that is why the sandbox's user must be another one outside, too.
fn write_sysctl(_: &Target) -> Attempted {
    const SETTING: &str = "/proc/sys/vm/swappiness";
    let written = std::fs::read(SETTING).and_then(|value| std::fs::write(SETTING, value));
    Attempted::by("write of a sysctl", written.map_err(|error| crate::errno::of(&error)))
}
