//! What this machine can and cannot enforce, one finding per wall. A trial decides; the kernel's settings
//! only explain it.

mod container;
mod kernel;
mod limits;

use cofferdam_core::{NodeId, Seal};

use super::NativeBackend;
use crate::backend::{Finding, Status};
use crate::trial::{Trial, trial};

/// Tries a sandbox and looks at everything that has a say in it.
pub(super) async fn check(backend: &NativeBackend, node: &NodeId) -> Vec<Finding> {
    let trial = trial(backend, &backend.options.state, node).await;
    let up = trial.seal.as_ref().ok();
    vec![
        sandbox(&trial),
        kernel::user_namespaces(up),
        kernel::apparmor(up, &backend.options.binary),
        kernel::seccomp(up),
        kernel::landlock(),
        overlay(&trial),
        ids(up),
        limits::limits(up),
        container::container(up),
    ]
}

fn sandbox(trial: &Trial) -> Finding {
    match &trial.seal {
        Ok(seal) => {
            let read_only = seal.inside.mounts.iter().filter(|mount| mount.read_only).count();
            Finding::ok(
                "sandbox",
                format!("a trial came up and was measured: sealed, {read_only} mounts read-only"),
            )
        }
        Err(refusal) => Finding {
            name: "sandbox",
            status: Status::Missing,
            detail: refusal.problem.clone(),
            remedy: Some(refusal.remedy.clone()),
        },
    }
}

fn overlay(trial: &Trial) -> Finding {
    match &trial.overlay {
        Some(Ok(())) => Finding::ok("overlay", "a workspace can be a layer above the repository"),
        Some(Err(why)) => Finding {
            name: "overlay",
            status: Status::Weak,
            detail: format!("workspaces are copied, which takes time and space: {why}"),
            remedy: Some("export COFFERDAM_HOME=/a/folder/on/ext4/xfs/or/btrfs".to_owned()),
        },
        None => Finding::unknown("overlay", "no sandbox came up to try it in"),
    }
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
