//! The attack suite: the same attempts on every backend that claims to be sealed. Another backend is one more of
//! [`Backend`] in the list that [`attack`] is given.
//!
//! The hostile program (`tests/attacks`) runs inside, in front of a host on which everything that it wants
//! really exists. Each attempt is judged twice: by what the program reports (stopped, by the wall that is
//! named for it, in that wall's way) and from outside, where nothing may have changed. [`without_walls`] is the
//! control: the same attempts in a container that somebody started carelessly.

mod careless;
mod host;
mod names;
mod outside;
mod table;
mod verdict;
mod workspace;

use std::path::Path;

use cofferdam_attacks::Report;
use serde_json::Value;

use crate::containers::{ContainerMode, InContainers};
use crate::{Engine, Fixture};
pub use careless::without_walls;
pub use host::{AttackedHost, Inside};
pub use outside::{KEY, NAMES, Outside, Server};
pub use table::Table;
pub use verdict::{Exact, Verdict};
pub use workspace::attack_workspace;

/// A backend under attack.
pub struct Backend {
    /// Its name, in the table and in the file that is written.
    pub name: &'static str,
    /// What `cofferdam run` is told so that it uses this backend.
    pub flags: &'static [&'static str],
    /// How it runs containers, if it does.
    pub containers: Option<&'static ContainerMode>,
    /// What the attacker finds where.
    pub inside: Inside,
    /// Where a wall may answer in more than one way, or another wall than usual stands first: how it does here.
    pub exact: &'static [Exact],
}

/// Makes every attempt inside every backend, and fails unless each was stopped by its own wall.
///
/// # Panics
/// With everything that went wrong, after the table was printed and written.
pub fn attack(backends: &[Backend]) {
    let mut table = Table::default();
    for backend in backends {
        let fixture = match backend.containers {
            None => Some(Fixture::new()),
            Some(mode) => InContainers::new(mode).map(|stage| stage.fixture),
        };
        match fixture {
            Some(fixture) => table.judged(backend.name, attack_one(backend, fixture)),
            None => table.absent(backend.name, "there is no container engine"),
        }
    }
    println!("{}", table.text());
    println!("written to {}", table.write("attacks.json").display());
    let complaints = table.complaints();
    assert!(complaints.is_empty(), "attacks were not stopped as they must be: {complaints:#?}");
}

fn attack_one(backend: &Backend, mut fixture: Fixture) -> Verdict {
    let engine = Engine::find();
    let mut host = AttackedHost::new(&fixture, &backend.inside, engine.as_ref());
    fixture.set_env("ANTHROPIC_API_KEY", host::SECRET);
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
    let mut verdict = Verdict::of(&reports, &host.cannot_be_set_up(), backend.exact);
    let complaints = &mut verdict.complaints;
    complaints.extend(host.complaints());
    if finished.diff() != "" {
        complaints.push(format!("the attempts left something in the workspace: {}", finished.diff()));
    }
    if crate::tree_of(&fixture.repository(), &[]) != before {
        complaints.push("the original repository has changed".to_owned());
    }
    verdict
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
