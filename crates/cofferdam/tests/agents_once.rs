//! All that is known of an agent is in its own folder: `docs/contributing/add-an-agent.md`.

use std::collections::BTreeSet;
use std::path::Path;

use cofferdam_core::Agent;

/// Whose files an agent's facts are.
const FOLDERS: [&str; 3] = ["claude_code", "codex", "opencode"];

/// The places outside of those folders that name an agent, and why they have to.
const ALLOWED: [(&str, &str); 6] = [
    ("cofferdam-core/src/settings/agents.rs", "the enum itself, with the names that people write"),
    ("cofferdam-core/src/system_config/keys.rs", "people read there whose login a folder is"),
    ("cofferdam-agent/src/profile.rs", "the one list, from the enum to the folders"),
    (
        "cofferdam-server/src/handlers/check_auth.rs",
        "routes that other systems name like this, one for each agent",
    ),
    ("cofferdam-sandbox/src/container/image_agents.rs", "what our image has, as its Dockerfile says"),
    ("cofferdam-sandbox/src/docker/layers.rs", "the same, by the instructions of that Dockerfile"),
];

#[test]
fn an_agent_is_named_in_its_folder_in_the_list_and_in_few_other_places() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates are beside each other");
    let mut naming = BTreeSet::new();
    for one in crates.read_dir().expect("there are crates") {
        let sources = one.expect("a crate can be looked at").path().join("src");
        if sources.is_dir() {
            look_in(crates, &sources, &mut naming);
        }
    }
    let allowed: BTreeSet<String> = ALLOWED.iter().map(|(place, _)| (*place).to_owned()).collect();
    let new: Vec<&String> = naming.difference(&allowed).collect();
    assert!(new.is_empty(), "these name an agent; move the fact into its folder: {new:#?}");
    let old: Vec<&String> = allowed.difference(&naming).collect();
    assert!(old.is_empty(), "these name none any more; take them off the list: {old:#?}");
}

/// Adds the files below a folder whose code, without its tests and comments, names an agent.
fn look_in(crates: &Path, folder: &Path, naming: &mut BTreeSet<String>) {
    for entry in folder.read_dir().expect("a folder of sources can be read") {
        let path = entry.expect("a source can be looked at").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("sources have plain names");
        let place = path.strip_prefix(crates).expect("it is below the crates").display().to_string();
        if path.is_dir() {
            let is_own = place.starts_with("cofferdam-agent/") && FOLDERS.contains(&name);
            if !is_own && name != "tests" {
                look_in(crates, &path, naming);
            }
        } else if name.ends_with(".rs") && !is_test(name) {
            let text = std::fs::read_to_string(&path).expect("a source can be read");
            if names_an_agent(&text) {
                naming.insert(place);
            }
        }
    }
}

/// Whether a file is compiled for tests alone.
fn is_test(name: &str) -> bool {
    name == "tests.rs"
        || ["_tests.rs", "_properties.rs", "test_machine.rs"].iter().any(|end| name.ends_with(end))
}

/// By its variant. Names of programs are also those of models, and examples in sentences for people.
fn names_an_agent(text: &str) -> bool {
    let production = text.split("\n#[cfg(test)]").next().unwrap_or_default();
    let code = production.lines().map(|line| line.split("//").next().unwrap_or_default());
    let words: Vec<&str> =
        code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_')).collect();
    let is_named = |agent: Agent| {
        let variant = format!("{agent:?}");
        words.contains(&variant.as_str())
    };
    Agent::ALL.into_iter().any(is_named)
}

#[test]
fn every_agent_has_a_folder_of_its_own() {
    let names: Vec<&str> = Agent::ALL.into_iter().map(Agent::as_str).collect();
    assert_eq!(names, FOLDERS);
}
