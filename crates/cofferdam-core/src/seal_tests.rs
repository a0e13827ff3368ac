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
        workspace: WorkspaceSeal::default(),
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

/// A seal and a policy of a run that must not change its workspace.
fn read_only() -> (Seal, Policy) {
    let mut seal = good();
    seal.inside.writable.retain(|path| path != inside::WORKSPACE);
    seal.inside.mounts[1].read_only = true;
    seal.workspace = WorkspaceSeal::measured(inside::WORKSPACE, &seal.inside);
    (seal, Policy { workspace_access: WorkspaceAccess::ReadOnly, ..policy() })
}

fn mount(target: &str, read_only: bool) -> MountFact {
    MountFact { target: target.to_owned(), fs_type: "ext4".to_owned(), read_only }
}

#[test]
fn a_read_only_workspace_is_no_breach_whatever_the_policy_says() {
    let (seal, read_only) = read_only();
    assert_eq!(seal.workspace.access, WorkspaceAccess::ReadOnly);
    assert_eq!(seal.breaches(&read_only, &[]), []);
    assert_eq!(seal.breaches(&policy(), &[]), [], "less than was granted is no breach");
}

#[test]
fn a_workspace_that_is_writable_against_the_policy_is_one_breach_that_says_so() {
    let (_, policy) = read_only();
    let (seal, _) = read_only();
    let mut cases = vec![("/workspace could be written", good())];
    cases.push(("the mount /workspace is not read-only", {
        let mut only_landlock = good();
        only_landlock.inside.writable.retain(|path| path != inside::WORKSPACE);
        only_landlock
    }));
    for (words, below, writable) in [
        ("the mount /workspace/disk is not read-only", mount("/workspace/disk", false), false),
        ("/workspace/disk could be written", mount("/workspace/disk", true), true),
    ] {
        let mut seal = seal.clone();
        seal.inside.writable.extend(writable.then(|| below.target.clone()));
        seal.inside.mounts.push(below);
        cases.push((words, seal));
    }
    for (words, mut seal) in cases {
        seal.workspace = WorkspaceSeal::measured(inside::WORKSPACE, &seal.inside);
        assert_eq!(seal.workspace.access, WorkspaceAccess::ReadWrite, "{words}");
        let found = seal.breaches(&policy, &[]);
        let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(shown, [format!("mounts: expected a read-only workspace, measured {words}")]);
    }
}

#[test]
fn a_claim_that_the_workspace_is_read_only_is_not_believed() {
    let (_, policy) = read_only();
    let claimed = WorkspaceSeal { access: WorkspaceAccess::ReadOnly, ..WorkspaceSeal::default() };
    let seal = Seal { workspace: claimed, ..good() };
    assert_eq!(seal.breaches(&policy, &[]).len(), 1);
}

#[test]
fn a_read_only_workspace_is_judged_where_it_is() {
    let (mut seal, policy) = read_only();
    let elsewhere = "/home/me/app";
    let measure = |seal: &mut Seal| seal.workspace = WorkspaceSeal::measured(elsewhere, &seal.inside);
    seal.inside.mounts.push(mount(elsewhere, true));
    measure(&mut seal);
    assert_eq!(seal.breaches(&policy, &[]), []);
    seal.inside.mounts.last_mut().unwrap().read_only = false;
    measure(&mut seal);
    assert_eq!(seal.breaches(&policy, &[elsewhere.into()]).len(), 1, "nobody grants it as a companion");
    // A grant around it is none of it.
    let around = Mount { path: "/home/me".into(), access: MountAccess::Rw };
    assert_eq!(seal.breaches(&Policy { mounts: vec![around], ..policy }, &[]).len(), 1);
}

#[test]
fn a_workspace_that_is_on_no_mount_of_its_own_is_as_the_mount_around_it() {
    let (mut seal, policy) = read_only();
    seal.inside.mounts.remove(1);
    assert_eq!(seal.breaches(&policy, &[]), [], "the root is read-only");
    seal.inside.mounts[0].read_only = false;
    let found = seal.breaches(&policy, &[]);
    assert!(found.iter().any(|breach| breach.expected == "a read-only workspace"), "{found:?}");
    seal.inside.mounts.remove(0);
    let found = seal.breaches(&policy, &[]);
    assert!(found.iter().any(|breach| breach.expected == "a read-only workspace"), "{found:?}");
}

#[test]
fn a_seal_of_before_has_a_writable_workspace() {
    let mut recorded = serde_json::to_value(good()).unwrap();
    recorded.as_object_mut().unwrap().remove("workspace");
    let read: Seal = serde_json::from_value(recorded).unwrap();
    assert_eq!(
        read.workspace,
        WorkspaceSeal { path: "/workspace".to_owned(), access: WorkspaceAccess::ReadWrite }
    );
}
