//! What the outside knows of a container's seal.

use std::collections::BTreeMap;
use std::fs;

use cofferdam_core::{DiskLimit, InsideSeal, NamespaceFact, OutsideSeal, Policy};

/// Compares what the probe found with this machine. On another kernel (a machine of the container's own) nothing is
/// shared, and the numbers have nothing to do with ours.
pub(crate) fn outside(inside: &InsideSeal, policy: &Policy) -> OutsideSeal {
    let apart = &inside.apart;
    let own_boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let same_kernel = match (&apart.boot_id, own_boot) {
        (Some(inside), Some(own)) => inside == own.trim(),
        // Unknown is never reported as good: then the numbers are compared.
        _ => true,
    };
    let fact = |(kind, &sandbox): (&String, &u64)| {
        let host = if same_kernel { own_namespace(kind).unwrap_or(sandbox) } else { 0 };
        (kind.clone(), NamespaceFact { sandbox, host })
    };
    OutsideSeal {
        namespaces: apart.namespaces.iter().map(fact).collect::<BTreeMap<_, _>>(),
        // A user who is unknown counts as root.
        host_uid: apart.outer_uid.unwrap_or(0),
        cgroup: apart.cgroup.clone(),
        limits_note: (!same_kernel).then(|| "on a kernel of its own".to_owned()),
        workspace_bytes: Some(policy.limits.workspace_bytes),
        disk: DiskLimit::Sampled,
    }
}

fn own_namespace(kind: &str) -> Option<u64> {
    let link = fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
    link.to_str()?.trim_end_matches(']').rsplit('[').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::InsideApart;

    fn seal(apart: InsideApart) -> OutsideSeal {
        let inside = InsideSeal { apart, ..cofferdam_walls::probe(&[]) };
        outside(&inside, &Policy::default())
    }

    fn apart(boot_id: Option<&str>, pid: u64) -> InsideApart {
        let boot_id = boot_id.map(str::to_owned);
        InsideApart {
            boot_id,
            namespaces: BTreeMap::from([("pid".to_owned(), pid)]),
            ..InsideApart::default()
        }
    }

    #[test]
    fn the_same_number_on_the_same_kernel_is_the_hosts_own() {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let own = own_namespace("pid").unwrap();
        let shared = seal(apart(Some(boot.trim()), own));
        assert_eq!(shared.namespaces["pid"], NamespaceFact { sandbox: own, host: own });
        let elsewhere = seal(apart(Some("another boot"), own));
        assert_eq!(elsewhere.namespaces["pid"], NamespaceFact { sandbox: own, host: 0 });
        let unknown = seal(apart(None, own));
        assert_eq!(unknown.namespaces["pid"], NamespaceFact { sandbox: own, host: own });
        assert_eq!(unknown.host_uid, 0, "a user who is unknown counts as root");
    }
}
