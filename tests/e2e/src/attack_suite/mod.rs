//! The attack suite, which every backend that claims to be sealed runs by one line: [`attack`].
//!
//! The hostile program (`tests/attacks`) runs inside, in front of a host on which everything that it wants
//! really exists. Each attempt is judged twice: by what the program reports (stopped, by the wall that is
//! named for it, in that wall's way) and from outside, where nothing may have changed.

mod host;
mod names;
mod outside;
mod verdict;

use std::path::Path;

use cofferdam_attacks::Report;
use serde_json::Value;

use crate::Fixture;
pub use host::{AttackedHost, Inside};
pub use outside::{KEY, NAMES, Outside, Server};
pub use verdict::Verdict;

/// A backend under attack.
pub struct Backend {
    /// Its name, in the table and in the file that is written.
    pub name: &'static str,
    /// What `cofferdam run` is told so that it uses this backend.
    pub flags: &'static [&'static str],
    /// What the attacker finds where.
    pub inside: Inside,
    /// Where a wall may answer in more than one way: how it does here, by attempt.
    pub exact: &'static [(&'static str, &'static str)],
}

/// Runs every attempt inside the backend and fails unless each was stopped by its own wall.
///
/// # Panics
/// With everything that went wrong, after the table was printed.
pub fn attack(backend: &Backend) {
    let fixture = Fixture::new();
    let mut host = AttackedHost::new(&fixture, &backend.inside);
    let before = crate::tree_of(&fixture.repository(), &[]);
    let target = serde_json::to_string(&host.target).expect("a target is plain data");
    let program = host.program.display().to_string();
    let tools = host.program.parent().expect("a program is in a folder").display().to_string();

    let mut args = vec!["run", "--json"];
    args.extend(backend.flags);
    args.extend(["--mount", &tools, "--timeout", "300s", "--"]);
    args.extend([program.as_str(), "run", "--target", &target]);
    let finished = fixture.cofferdam(&args);
    assert_eq!(finished.outcome(), "succeeded", "{}", finished.stderr);

    let events = events(&fixture, &finished.run_id());
    let reports: Vec<Report> = messages(&events).filter_map(|text| serde_json::from_str(text).ok()).collect();
    let verdict = Verdict::of(&reports, &host.cannot_be_set_up(), backend.exact);
    println!("{}", verdict.table(backend.name));
    verdict.write(&format!("attacks-{}.json", backend.name));

    let mut complaints = verdict.complaints;
    complaints.extend(host.complaints());
    if finished.diff() != "" {
        complaints.push(format!("the attempts left something in the workspace: {}", finished.diff()));
    }
    if crate::tree_of(&fixture.repository(), &[]) != before {
        complaints.push("the original repository has changed".to_owned());
    }
    assert!(
        complaints.is_empty(),
        "{} attacks were not stopped as they must be: {complaints:#?}",
        backend.name
    );
}

/// Every event of a run.
///
/// # Panics
/// If they cannot be read.
#[must_use]
pub fn events(fixture: &Fixture, run: &str) -> Vec<Value> {
    let listed = fixture.cofferdam(["runs", "events", "--json", run]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let text = String::from_utf8(listed.stdout).expect("JSON is text");
    text.lines().map(|line| serde_json::from_str(line).expect("each event is an object")).collect()
}

/// What the agent printed, line by line.
pub fn messages(events: &[Value]) -> impl Iterator<Item = &str> {
    events
        .iter()
        .filter(|event| event["type"] == "agent.message")
        .filter_map(|event| event["data"]["text"].as_str())
}

/// Puts the hostile program where a sandbox can be shown it. Returns the folder to mount and the program.
///
/// # Panics
/// If it cannot be copied.
#[must_use]
pub fn hostile_program(fixture: &Fixture) -> (String, String) {
    let folder = fixture.path("tools");
    std::fs::create_dir_all(&folder).expect("a new folder");
    let program = folder.join("attacks");
    copy_program(&program, 0o755);
    (folder.display().to_string(), program.display().to_string())
}

fn copy_program(to: &Path, mode: u32) {
    std::fs::copy(crate::test_binary("attacks"), to).expect("the hostile program can be copied");
    std::fs::set_permissions(to, std::os::unix::fs::PermissionsExt::from_mode(mode)).expect("it is ours");
}
