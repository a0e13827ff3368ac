//! Every way to change what a workspace holds, on a read-only workspace and, as the control, on a writable one.

use cofferdam_attacks::{Attempt, Ending, ON_WORKSPACE, Report};
use cofferdam_core::Wall;

use super::{AttackedHost, Backend, events, messages};
use crate::containers::InContainers;
use crate::{Engine, Fixture};

/// How the repository gets into a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// Whoever runs the tests. Root's repository is copied into a container, since no agent is root.
    Caller,
    /// An ordinary user, whose repository is layered.
    Ordinary,
}

/// Makes every attempt inside every backend, where the workspace is read-only and where it is not.
///
/// # Panics
/// With everything that went wrong.
pub fn attack_workspace(backends: &[Backend]) {
    let mut complaints = Vec::new();
    for backend in backends {
        // On this machine the repository of either is layered.
        let owners = match backend.containers {
            None => &[Owner::Caller][..],
            Some(_) => &[Owner::Caller, Owner::Ordinary],
        };
        for &owner in owners {
            for is_closed in [true, false] {
                let Some(found) = attack_one(backend, owner, is_closed) else {
                    println!("SKIPPED: {}: there is no container engine", backend.name);
                    continue;
                };
                let what = if is_closed { "read-only" } else { "writable" };
                complaints
                    .extend(found.iter().map(|why| format!("{}, {owner:?}, {what}: {why}", backend.name)));
            }
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}

/// What was not as it must be; `None` where there is nothing to attack.
fn attack_one(backend: &Backend, owner: Owner, is_closed: bool) -> Option<Vec<String>> {
    let fixture = match backend.containers {
        None => Fixture::new(),
        Some(mode) => {
            let stage = InContainers::new(mode)?;
            if owner == Owner::Ordinary {
                let _ = stage.owned_repository();
            }
            stage.fixture
        }
    };
    let engine = Engine::find();
    let host = AttackedHost::new(&fixture, &backend.inside, engine.as_ref());
    let before = crate::tree_of(&fixture.repository(), &[]);
    let target = serde_json::to_string(&host.target).expect("a target is plain data");
    let program = host.program.display().to_string();
    let tools = host.program.parent().expect("a program is in a folder").display().to_string();
    let mut args = vec!["run", "--json"];
    args.extend(backend.flags);
    args.extend(is_closed.then_some("--read-only"));
    args.extend(["--mount", &tools, "--", &program, "workspace", "--target", &target]);
    let finished = fixture.cofferdam(&args);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);

    let said = finished.json();
    let events = events(&fixture, &finished.run_id());
    let reports: Vec<Report> = messages(&events).filter_map(|text| serde_json::from_str(text).ok()).collect();
    let mut complaints: Vec<String> =
        ON_WORKSPACE.iter().filter_map(|attempt| judge(attempt, &reports, is_closed).err()).collect();
    let access = if is_closed { "read_only" } else { "read_write" };
    if said["seal"]["workspace"]["access"] != access {
        complaints.push(format!("the seal says {}", said["seal"]["workspace"]));
    }
    if is_closed && finished.diff() != "" {
        complaints.push(format!("there is a diff: {}", finished.diff()));
    }
    if crate::tree_of(&fixture.repository(), &[]) != before {
        complaints.push("the original repository has changed".to_owned());
    }
    Some(complaints)
}

/// In a writable workspace only those are stopped that another wall stops everywhere.
fn judge(attempt: &Attempt, reports: &[Report], is_closed: bool) -> Result<(), String> {
    let mut own = reports.iter().filter(|report| report.name == attempt.name);
    let (Some(report), None) = (own.next(), own.next()) else {
        return Err(format!("{}: not reported exactly once", attempt.name));
    };
    match (is_closed, attempt.wall) {
        (false, Wall::Mounts) if report.result == Ending::Succeeded => Ok(()),
        (false, Wall::Mounts) => Err(format!("{}: does not work at all: {}", attempt.name, report.detail)),
        (_, _) => attempt.judge(report),
    }
}
