//! What this machine can and cannot enforce, one finding per wall. A trial decides; the kernel's settings
//! only explain it.

mod enclosing_container;
mod kernel;
mod limits;

use cofferdam_core::{ContainerPolicy, NodeId, Seal};

use super::NativeBackend;
use crate::backend::Finding;
use crate::trial::trial;

/// Tries a sandbox and looks at everything that has a say in it.
pub(super) async fn check(backend: &NativeBackend, node: &NodeId) -> Vec<Finding> {
    let trial = trial(backend, &backend.options.state, node, ContainerPolicy::default()).await;
    let up = trial.seal.as_ref().ok();
    vec![
        trial.sandbox(),
        kernel::user_namespaces(up),
        kernel::apparmor(up, &backend.options.binary),
        kernel::seccomp(up),
        kernel::landlock(),
        trial.overlay("export COFFERDAM_HOME=/a/folder/on/ext4/xfs/or/btrfs"),
        ids(up),
        limits::limits(up),
        enclosing_container::enclosing_container(up),
    ]
}

fn ids(up: Option<&Seal>) -> Finding {
    let own = rustix::process::geteuid();
    match up {
        Some(seal) if own.is_root() => {
            let id = seal.outside.host_uid;
            Finding::ok(
                "ids",
                format!("each sandbox has a range of ids of its own (the trial's agent: {id})"),
            )
        }
        Some(_) => Finding::ok("ids", format!("one id: outside, agents are you (uid {})", own.as_raw())),
        None => Finding::unknown("ids", "no sandbox came up to see its ids"),
    }
}
