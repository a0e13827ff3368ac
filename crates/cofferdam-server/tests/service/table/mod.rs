//! Every operation and every route, for every kind of actor, on a run of its own, on another owner's, and on one of its own that has
//! more than the actor may ask for: by the operation itself and over HTTP, under both settings of `service.visibility`.

mod by_operation;
mod over_http;
pub(crate) mod stage;

use std::collections::BTreeSet;

use cofferdam_core::{Action, Visibility};
use serde_json::Value;

use self::stage::Stage;

/// Who asks, in the order of the columns below.
pub(crate) const ACTORS: [&str; 7] = ["read", "run", "read,run", "system", "loopback", "local", "role"];

/// What becomes of each action: for each actor, on a run of its own, on another owner's, and on one of its own with more than
/// the operator's lists give. `+` is done, `-` is refused, `0` is as if it were not there, `.` has no such subject.
const TABLE: &[(Action, [&str; 7])] = &[
    (Action::CreateRun, ["-.-", "+.-", "+.-", "+.+", "+.-", "+.+", "+.+"]),
    (Action::RetryRun, ["---", "+0-", "+--", "+++", "+--", "+++", "+++"]),
    (Action::CancelRun, ["---", "+0-", "+--", "+++", "+--", "+++", "+++"]),
    (Action::SendMessage, ["---", "+0-", "+--", "+++", "+--", "+++", "+++"]),
    (Action::AllowHost, ["---", "---", "---", "+++", "---", "+++", "+++"]),
    (Action::RemoveRun, ["---", "+0-", "+--", "+++", "+--", "+++", "+++"]),
    (Action::ListRuns, ["+++", "+0+", "+++", "+++", "+++", "+++", "+++"]),
    (Action::ReadRun, ["+++", "+0+", "+++", "+++", "+++", "+++", "+++"]),
    (Action::ReadDeadLetters, ["+++", "+0+", "+++", "+++", "+++", "+++", "+++"]),
    (Action::RemoveDeadLetter, ["---", "+0-", "+--", "+++", "+--", "+++", "+++"]),
    (Action::CreateProject, ["-..", "-..", "-..", "+..", "-..", "+..", "+.."]),
    (Action::ReadProjects, ["+..", "+..", "+..", "+..", "+..", "+..", "+.."]),
    (Action::RemoveProject, ["-..", "-..", "-..", "+..", "-..", "+..", "+.."]),
    (Action::CreateSpec, ["-..", "+..", "+..", "+..", "+..", "+..", "+.."]),
    (Action::ListSpecs, ["++.", "+0.", "++.", "++.", "++.", "++.", "++."]),
    (Action::ReadSpec, ["++.", "+0.", "++.", "++.", "++.", "++.", "++."]),
    (Action::UpdateSpec, ["--.", "+0.", "+-.", "++.", "+-.", "++.", "++."]),
    (Action::ExecuteSpec, ["--.", "+0.", "+-.", "++.", "+-.", "++.", "++."]),
    (Action::DecideSpec, ["--.", "+0.", "+-.", "++.", "+-.", "++.", "++."]),
    (Action::CreateKey, ["-..", "-..", "-..", "+..", "-..", "+..", "+.."]),
    (Action::ListKeys, ["-..", "-..", "-..", "+..", "-..", "+..", "+.."]),
    (Action::RevokeKey, ["-..", "-..", "-..", "+..", "-..", "+..", "+.."]),
    (Action::ListAgents, ["+..", "+..", "+..", "+..", "+..", "+..", "+.."]),
    (Action::ListNodes, ["+..", "-..", "+..", "+..", "+..", "+..", "+.."]),
    (Action::RunDoctor, ["-..", "-..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::LookAtAgents, ["-..", "-..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::CheckAuth, ["-..", "-..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::ReadConfig, ["-..", "-..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::ChangeConfig, ["-..", "-..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::ReadProcesses, ["-..", "-..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::StartProcess, ["-..", "-..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::StopProcess, ["-..", "-..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::ReadMetrics, ["+..", "-..", "+..", "+..", "+..", "+..", "+.."]),
    (Action::ReadAudit, ["-..", "-..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::ReadSettings, ["-..", "-..", "-..", "+..", "+..", "+..", "+.."]),
    (Action::ReadTrust, ["-..", "-..", "-..", "+..", "+..", "+..", "+.."]),
];

/// What differs where a key sees the runs of its own owner alone: what another owner's is to it is not there.
const WHERE_OWN_RUNS_ARE_SEEN: &[(Action, [&str; 7])] = &[
    (Action::RetryRun, ["---", "+0-", "+0-", "+++", "+--", "+++", "+++"]),
    (Action::CancelRun, ["---", "+0-", "+0-", "+++", "+--", "+++", "+++"]),
    (Action::SendMessage, ["---", "+0-", "+0-", "+++", "+--", "+++", "+++"]),
    (Action::RemoveRun, ["---", "+0-", "+0-", "+++", "+--", "+++", "+++"]),
    (Action::ListRuns, ["+0+", "+0+", "+0+", "+++", "+++", "+++", "+++"]),
    (Action::ReadRun, ["+0+", "+0+", "+0+", "+++", "+++", "+++", "+++"]),
    (Action::ReadDeadLetters, ["+0+", "+0+", "+0+", "+++", "+++", "+++", "+++"]),
    (Action::RemoveDeadLetter, ["---", "+0-", "+0-", "+++", "+--", "+++", "+++"]),
    (Action::ListSpecs, ["+0.", "+0.", "+0.", "++.", "++.", "++.", "++."]),
    (Action::ReadSpec, ["+0.", "+0.", "+0.", "++.", "++.", "++.", "++."]),
    (Action::UpdateSpec, ["--.", "+0.", "+0.", "++.", "+-.", "++.", "++."]),
    (Action::ExecuteSpec, ["--.", "+0.", "+0.", "++.", "+-.", "++.", "++."]),
    (Action::DecideSpec, ["--.", "+0.", "+0.", "++.", "+-.", "++.", "++."]),
];

/// Every route that needs a key, with what it does.
pub(crate) const ROUTES: &[(&str, &str, Action)] = &[
    ("GET", "/metrics", Action::ReadMetrics),
    ("POST", "/execute", Action::CreateRun),
    ("POST", "/execute/sdk", Action::CreateRun),
    ("GET", "/execute/sdk/{id}", Action::ReadRun),
    ("GET", "/api/v1/runs", Action::ListRuns),
    ("POST", "/api/v1/runs", Action::CreateRun),
    ("GET", "/api/v1/runs/{id}", Action::ReadRun),
    ("DELETE", "/api/v1/runs/{id}", Action::RemoveRun),
    ("POST", "/api/v1/runs/{id}/allow", Action::AllowHost),
    ("POST", "/api/v1/runs/{id}/cancel", Action::CancelRun),
    ("POST", "/api/v1/runs/{id}/retry", Action::RetryRun),
    ("GET", "/api/v1/runs/{id}/events", Action::ReadRun),
    ("GET", "/api/v1/runs/{id}/messages", Action::ReadRun),
    ("POST", "/api/v1/runs/{id}/messages", Action::SendMessage),
    ("GET", "/api/v1/runs/{id}/diff", Action::ReadRun),
    ("GET", "/api/v1/runs/{id}/logs", Action::ReadRun),
    ("GET", "/api/v1/runs/{id}/artifacts", Action::ReadRun),
    ("GET", "/api/v1/runs/{id}/artifacts/{attempt}/{name}", Action::ReadRun),
    ("GET", "/api/v1/runs/{id}/seal", Action::ReadRun),
    ("GET", "/api/v1/sandboxes/{id}/events", Action::ReadRun),
    ("GET", "/api/v1/sandboxes/{id}/messages", Action::ReadRun),
    ("POST", "/api/v1/sandboxes/{id}/messages", Action::SendMessage),
    ("GET", "/api/v1/projects", Action::ReadProjects),
    ("POST", "/api/v1/projects", Action::CreateProject),
    ("GET", "/api/v1/projects/{project}", Action::ReadProjects),
    ("DELETE", "/api/v1/projects/{project}", Action::RemoveProject),
    ("GET", "/api/v1/specs", Action::ListSpecs),
    ("POST", "/api/v1/specs", Action::CreateSpec),
    ("POST", "/api/v1/specs/launch", Action::CreateSpec),
    ("GET", "/api/v1/specs/{id}", Action::ReadSpec),
    ("PATCH", "/api/v1/specs/{id}", Action::UpdateSpec),
    ("DELETE", "/api/v1/specs/{id}", Action::UpdateSpec),
    ("POST", "/api/v1/specs/{id}/execute", Action::ExecuteSpec),
    ("POST", "/api/v1/specs/{id}/cancel", Action::ExecuteSpec),
    ("POST", "/api/v1/specs/{id}/approve", Action::DecideSpec),
    ("POST", "/api/v1/specs/{id}/reject", Action::DecideSpec),
    ("PUT", "/api/v1/specs/{id}/phases/{phase}", Action::UpdateSpec),
    ("GET", "/api/v1/specs/{id}/phase-data", Action::ReadSpec),
    ("GET", "/api/v1/specs/{id}/execution-status", Action::ReadSpec),
    ("GET", "/api/v1/specs/{id}/versions", Action::ReadSpec),
    ("GET", "/api/v1/specs/{id}/runs", Action::ReadSpec),
    ("GET", "/api/v1/specs/{id}/events", Action::ReadSpec),
    ("GET", "/api/v1/specs/{id}/requirements", Action::ReadSpec),
    ("GET", "/api/v1/specs/{id}/design", Action::ReadSpec),
    ("GET", "/api/v1/specs/{id}/tasks", Action::ReadSpec),
    ("GET", "/api/v1/specs/{id}/export", Action::ReadSpec),
    ("GET", "/api/v1/agents", Action::ListAgents),
    ("GET", "/api/v1/nodes", Action::ListNodes),
    ("GET", "/api/v1/dead-letters", Action::ReadDeadLetters),
    ("GET", "/api/v1/dead-letters/{run}", Action::ReadDeadLetters),
    ("DELETE", "/api/v1/dead-letters/{run}", Action::RemoveDeadLetter),
    ("POST", "/api/v1/dead-letters/{run}/replay", Action::RetryRun),
    ("GET", "/api/v1/audit", Action::ReadAudit),
    ("GET", "/api/v1/keys", Action::ListKeys),
    ("POST", "/api/v1/keys", Action::CreateKey),
    ("DELETE", "/api/v1/keys/{id}", Action::RevokeKey),
    ("GET", "/system/settings", Action::ReadSettings),
    ("GET", "/system/trust", Action::ReadTrust),
    ("GET", "/config", Action::ReadConfig),
    ("PATCH", "/config", Action::ChangeConfig),
    ("GET", "/system/claude/auth", Action::CheckAuth),
    ("GET", "/system/codex/auth", Action::CheckAuth),
    ("GET", "/system/opencode/auth", Action::CheckAuth),
    ("GET", "/system/agents", Action::LookAtAgents),
    ("GET", "/system/doctor", Action::RunDoctor),
    ("GET", "/system/processes", Action::ReadProcesses),
    ("POST", "/system/processes/stop-all", Action::StopProcess),
    ("GET", "/system/processes/{name}", Action::ReadProcesses),
    ("POST", "/system/processes/{name}/start", Action::StartProcess),
    ("POST", "/system/processes/{name}/stop", Action::StopProcess),
    ("GET", "/system/processes/{name}/logs", Action::ReadProcesses),
];

/// Whose the subject is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Own,
    Foreign,
    Privileged,
}

const SUBJECTS: [Whose; 3] = [Whose::Own, Whose::Foreign, Whose::Privileged];

/// What becomes of an action, for each actor and subject that there is.
fn expected(action: Action, visibility: Visibility) -> impl Iterator<Item = (usize, Whose, char)> {
    let differs = match visibility {
        Visibility::Own => WHERE_OWN_RUNS_ARE_SEEN,
        Visibility::All => &[],
    };
    let (_, row) = differs.iter().chain(TABLE).find(|(listed, _)| *listed == action).expect("it has a row");
    let subjects = |column: &'static str| SUBJECTS.into_iter().zip(column.chars());
    let cells = row.iter().enumerate().flat_map(move |(actor, column)| {
        subjects(column).map(move |(whose, expected)| (actor, whose, expected))
    });
    cells.filter(|(_, _, expected)| *expected != '.')
}

#[test]
fn every_action_and_every_route_that_needs_a_key_has_its_row() {
    let listed: Vec<Action> = TABLE.iter().map(|(action, _)| *action).collect();
    assert_eq!(listed, Action::ALL, "an action without a row");
    let document = cofferdam_server::openapi();
    let mut described = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let closed =
            methods.as_object().unwrap().iter().filter(|(_, call)| call["security"] != Value::Array(vec![]));
        described.extend(closed.map(|(method, _)| (method.to_uppercase(), path.clone())));
    }
    let listed = ROUTES.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()));
    assert_eq!(listed.collect::<BTreeSet<_>>(), described, "a route without a row, or a row without a route");
}

async fn every_operation_is_judged_by_the_table(visibility: Visibility) {
    let mut stage = Stage::new(visibility).await;
    for action in Action::ALL.iter().copied() {
        for (index, whose, expected) in expected(action, visibility) {
            let actor = stage.cast[index].actor.clone();
            let run = stage.run(action, &actor, whose).await;
            let found = stage.by_operation(action, &actor, &run, whose).await;
            assert_eq!(found, expected, "{action} by {} on {whose:?}", ACTORS[index]);
        }
    }
}

async fn every_route_is_judged_by_the_table(visibility: Visibility) {
    let mut stage = Stage::new(visibility).await;
    for (method, path, action) in ROUTES {
        for (index, whose, expected) in expected(*action, visibility) {
            // Nobody who is at the command line, and no role of ours, comes over HTTP without being somebody else there.
            if matches!(ACTORS[index], "local" | "role") {
                continue;
            }
            let told = format!("{method} {path} by {} on {whose:?}", ACTORS[index]);
            let found = stage.over_http((method, path, *action), index, whose).await;
            if let Some(found) = found {
                assert_eq!(found, expected, "{told}");
            }
        }
    }
}

#[tokio::test]
async fn every_operation_is_judged_by_itself_as_the_table_says() {
    every_operation_is_judged_by_the_table(Visibility::All).await;
    every_operation_is_judged_by_the_table(Visibility::Own).await;
}

#[tokio::test]
async fn every_route_is_judged_as_the_table_says() {
    every_route_is_judged_by_the_table(Visibility::All).await;
}

#[tokio::test]
async fn every_route_is_judged_as_the_table_says_where_own_runs_are_seen() {
    every_route_is_judged_by_the_table(Visibility::Own).await;
}
