use super::*;
use crate::policy::Network;
use crate::policy::{Limits, Mount};

fn policy() -> Policy {
    Policy::default()
}

fn good() -> Seal {
    let Limits { memory_bytes, cpus_milli, pids, open_files, workspace_bytes, .. } = policy().limits;
    let refused = || Tried::Refused("EPERM".to_owned());
    let mount = |target: &str, read_only| MountFact {
        target: target.to_owned(),
        fs_type: "tmpfs".to_owned(),
        read_only,
    };
    let namespaces = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];
    Seal {
        mode: Mode::Native,
        inside: InsideSeal {
            uid: inside::UID,
            gid: inside::UID,
            capabilities: CapabilitySets::default(),
            no_new_privileges: true,
            seccomp_mode: 2,
            system_calls: BTreeMap::from([("mount".to_owned(), refused())]),
            landlock_abi: 6,
            mounts: vec![mount("/", true), mount(inside::WORKSPACE, false), mount(inside::CANARY, false)],
            writable: [inside::WORKSPACE, inside::HOME, inside::TMP].map(str::to_owned).to_vec(),
            visible_processes: 2,
            limits: InsideLimits {
                open_files: Some(open_files),
                processes: None,
                file_bytes: None,
                core_bytes: Some(0),
            },
            network: InsideNetwork {
                interfaces: vec!["lo".to_owned()],
                ipv4: Tried::Refused("ENETUNREACH".to_owned()),
                ipv6: Tried::Refused("ENETUNREACH".to_owned()),
            },
            apart: InsideApart::default(),
        },
        outside: OutsideSeal {
            namespaces: namespaces
                .map(|kind| (kind.to_owned(), NamespaceFact { sandbox: 2, host: 1 }))
                .into(),
            host_uid: 100_000,
            cgroup: Some(CgroupFact {
                version: 2,
                path: "/cofferdam/x".to_owned(),
                memory_bytes: Some(memory_bytes),
                cpus_milli: Some(cpus_milli),
                pids: Some(u64::from(pids) + crate::policy::WORKER_PIDS),
            }),
            limits_note: None,
            workspace_bytes: Some(workspace_bytes),
            disk: DiskLimit::Sampled,
        },
        hidden: Vec::new(),
        stripped: Vec::new(),
    }
}

/// The walls that `change` breaks, each once.
fn walls_broken_by(change: impl FnOnce(&mut Seal)) -> Vec<Wall> {
    let mut seal = good();
    change(&mut seal);
    let mut walls: Vec<Wall> = seal.breaches(&policy(), &[]).into_iter().map(|breach| breach.wall).collect();
    walls.dedup();
    walls
}

#[test]
fn a_good_seal_has_no_breach() {
    assert_eq!(good().breaches(&policy(), &[]), []);
}

#[test]
fn a_missing_or_shared_namespace_is_a_breach_of_just_that_wall() {
    for kind in NAMESPACES {
        let missing = walls_broken_by(|seal| _ = seal.outside.namespaces.remove(kind));
        assert_eq!(missing, [Wall::Namespaces], "{kind}");
        let same = NamespaceFact { sandbox: 1, host: 1 };
        let shared = walls_broken_by(|seal| _ = seal.outside.namespaces.insert(kind.to_owned(), same));
        assert_eq!(shared, [Wall::Namespaces], "{kind}");
    }
    assert_eq!(walls_broken_by(|seal| seal.mode = Mode::Host), [Wall::Namespaces]);
}

#[test]
fn any_way_to_the_network_is_a_breach_of_just_that_wall() {
    let broken = [Wall::Network];
    assert_eq!(walls_broken_by(|seal| _ = seal.outside.namespaces.remove("net")), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.network.interfaces.push("eth0".to_owned())), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.network.ipv4 = Tried::Worked), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.network.ipv6 = Tried::Worked), broken);
}

#[test]
fn an_open_network_is_no_breach_where_the_policy_allows_it() {
    let mut seal = good();
    seal.outside.namespaces.remove("net");
    seal.inside.network.interfaces.push("eth0".to_owned());
    seal.inside.network.ipv4 = Tried::Worked;
    assert_eq!(seal.breaches(&Policy { network: Network::Open, ..policy() }, &[]), []);
}

#[test]
fn root_inside_or_outside_is_a_breach_of_just_that_wall() {
    assert_eq!(walls_broken_by(|seal| seal.inside.uid = 0), [Wall::User]);
    assert_eq!(walls_broken_by(|seal| seal.inside.gid = 0), [Wall::User]);
    assert_eq!(walls_broken_by(|seal| seal.outside.host_uid = 0), [Wall::User]);
}

#[test]
fn a_capability_in_any_set_is_a_breach_of_just_that_wall() {
    let broken = [Wall::Capabilities];
    assert_eq!(walls_broken_by(|seal| seal.inside.capabilities.effective = 1), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.capabilities.permitted = 1), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.capabilities.inheritable = 1), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.capabilities.bounding = 1), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.capabilities.ambient = 1), broken);
}

#[test]
fn privileges_that_can_be_gained_are_a_breach_of_just_that_wall() {
    assert_eq!(walls_broken_by(|seal| seal.inside.no_new_privileges = false), [Wall::NoNewPrivileges]);
}

#[test]
fn a_system_call_that_works_or_was_not_tried_is_a_breach_of_just_that_wall() {
    let broken = [Wall::Seccomp];
    assert_eq!(walls_broken_by(|seal| seal.inside.seccomp_mode = 0), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.system_calls.clear()), broken);
    let worked = || ("bpf".to_owned(), Tried::Worked);
    assert_eq!(walls_broken_by(|seal| seal.inside.system_calls.extend([worked()])), broken);
}

#[test]
fn a_canary_that_is_writable_or_missing_is_a_breach_of_just_landlock() {
    let broken = [Wall::Landlock];
    assert_eq!(walls_broken_by(|seal| seal.inside.landlock_abi = 0), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.writable.push(inside::CANARY.to_owned())), broken);
    assert_eq!(walls_broken_by(|seal| _ = seal.inside.mounts.pop()), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.mounts[2].read_only = true), broken);
}

#[test]
fn a_writable_path_that_nobody_granted_is_a_breach_of_just_that_wall() {
    let broken = [Wall::Mounts];
    assert_eq!(walls_broken_by(|seal| seal.inside.writable.push("/usr".to_owned())), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.mounts[0].read_only = false), broken);
    assert_eq!(walls_broken_by(|seal| _ = seal.inside.mounts.remove(0)), broken);
}

#[test]
fn a_mount_may_be_written_exactly_if_it_was_granted_read_write() {
    let mut seal = good();
    seal.inside.writable.push("/data".to_owned());
    let granted = |access| Policy { mounts: vec![Mount { path: "/data".into(), access }], ..policy() };
    assert_eq!(seal.breaches(&granted(MountAccess::Rw), &[]), []);
    assert_eq!(seal.breaches(&granted(MountAccess::Ro), &[]).len(), 1);
}

#[test]
fn a_limit_that_is_missing_or_too_wide_is_a_breach_of_just_that_wall() {
    fn group(seal: &mut Seal) -> &mut CgroupFact {
        seal.outside.cgroup.as_mut().expect("a good seal has a group")
    }
    let broken = [Wall::Limits];
    assert_eq!(walls_broken_by(|seal| seal.outside.cgroup = None), broken);
    assert_eq!(walls_broken_by(|seal| group(seal).memory_bytes = None), broken);
    assert_eq!(walls_broken_by(|seal| group(seal).memory_bytes = Some(3 << 30)), broken);
    assert_eq!(walls_broken_by(|seal| group(seal).cpus_milli = Some(2_000)), broken);
    assert_eq!(walls_broken_by(|seal| group(seal).pids = None), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.limits.open_files = None), broken);
    assert_eq!(walls_broken_by(|seal| seal.inside.limits.core_bytes = Some(1)), broken);
    assert_eq!(walls_broken_by(|seal| seal.outside.workspace_bytes = None), broken);
}

#[test]
fn a_missing_group_is_no_breach_where_limits_are_best_effort() {
    let mut seal = good();
    seal.outside.cgroup = None;
    let policy = Policy { limits_rule: LimitsRule::BestEffort, ..policy() };
    assert_eq!(seal.breaches(&policy, &[]).len(), 1, "somebody must count the processes");
    seal.inside.limits.processes = Some(u64::from(policy.limits.pids));
    assert_eq!(seal.breaches(&policy, &[]), []);
}

#[test]
fn a_group_that_counts_no_processes_needs_somebody_who_does_where_limits_are_best_effort() {
    let mut seal = good();
    seal.outside.cgroup.as_mut().unwrap().pids = None;
    seal.inside.limits.processes = Some(u64::from(policy().limits.pids));
    let lenient = Policy { limits_rule: LimitsRule::BestEffort, ..policy() };
    assert_eq!(seal.breaches(&lenient, &[]), []);
    assert_eq!(seal.breaches(&policy(), &[]).len(), 1, "a group is required");
    seal.inside.limits.processes = None;
    assert_eq!(seal.breaches(&lenient, &[]).len(), 1, "somebody must count the processes");
}

#[test]
fn a_host_run_promises_no_wall() {
    let mut seal = good();
    seal.mode = Mode::Host;
    seal.inside.uid = 0;
    seal.outside.namespaces.clear();
    assert_eq!(seal.breaches(&Policy { mode: Mode::Host, ..policy() }, &[]), []);
}

#[test]
fn a_mount_that_only_landlock_closes_is_a_breach() {
    let mut seal = good();
    let usr = MountFact { target: "/usr".to_owned(), fs_type: "ext4".to_owned(), read_only: false };
    seal.inside.mounts.push(usr);
    let found = seal.breaches(&policy(), &[]);
    assert_eq!(found.iter().map(|breach| breach.wall).collect::<Vec<_>>(), [Wall::Mounts], "{found:?}");
}

#[test]
fn what_is_mounted_below_a_mount_of_the_callers_came_with_it() {
    let mut seal = good();
    let below = MountFact { target: "/data/disk".to_owned(), fs_type: "ext4".to_owned(), read_only: false };
    seal.inside.mounts.push(below);
    let mount = |path: &str, access| Mount { path: path.into(), access };
    let mut policy = policy();
    policy.mounts = vec![mount("/data", MountAccess::Rw)];
    assert_eq!(seal.breaches(&policy, &[]), []);
    policy.mounts.push(mount("/data/disk", MountAccess::Ro));
    assert_eq!(seal.breaches(&policy, &[]).len(), 1);
}
