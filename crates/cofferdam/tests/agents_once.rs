//! All that is known of an agent is in its own folder: `docs/contributing/add-an-agent.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cofferdam_agent::profile;
use cofferdam_core::Agent;
use cofferdam_sandbox::docker::DOCKERFILE;

/// Whose files an agent's facts are.
const FOLDERS: [&str; 3] = ["claude_code", "codex", "opencode"];

/// The places outside of those folders that name an agent, how often, and why they have to.
const ALLOWED: [(&str, usize, &str); 12] = [
    ("cofferdam-core/src/settings/agents.rs", 14, "the enum itself, with the names that people write"),
    ("cofferdam-agent/src/profile.rs", 3, "the one list, from the enum to the folders"),
    (
        "cofferdam-server/src/handlers/check_auth.rs",
        6,
        "routes that other systems name like this, one for each",
    ),
    ("cofferdam-server/src/router.rs", 3, "the same routes"),
    (
        "cofferdam-core/src/system_config/keys.rs",
        12,
        "keys that other systems name like this, and what they are for",
    ),
    ("cofferdam-core/src/system_config/mod.rs", 1, "an example of the folder in such a key"),
    (
        "cofferdam-core/src/settings/import.rs",
        1,
        "what other systems call them in the files that are imported",
    ),
    (
        "cofferdam-core/src/run_input/env.rs",
        2,
        "variables that open a model, whichever agent or program is to have them",
    ),
    (
        "cofferdam-core/src/conclude.rs",
        2,
        "what to type where a token has expired: an end is judged without its agent",
    ),
    ("cofferdam-core/src/run_input/choice.rs", 1, "an example of what to write into the settings"),
    ("cofferdam-core/src/text_schema.rs", 1, "an example of a name, in the description of the API"),
    ("cofferdam/src/secrets.rs", 2, "the address of a vendor's subscription, and whom another one is for"),
];

#[test]
fn an_agent_is_named_in_its_folder_in_the_list_and_in_few_other_places() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates are beside each other");
    let mut naming = BTreeMap::new();
    for one in crates.read_dir().expect("there are crates") {
        let sources = one.expect("a crate can be looked at").path().join("src");
        if sources.is_dir() {
            look_in(crates, &sources, &mut naming);
        }
    }
    let allowed: BTreeMap<String, usize> =
        ALLOWED.iter().map(|(place, times, _)| ((*place).to_owned(), *times)).collect();
    assert_eq!(
        naming, allowed,
        "how often files name an agent (found, listed): move the fact into its folder"
    );
}

/// Adds the files below a folder whose code, without its tests and comments, names an agent.
fn look_in(crates: &Path, folder: &Path, naming: &mut BTreeMap<String, usize>) {
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
            let times = times_named(&fs::read_to_string(&path).expect("a source can be read"));
            if times > 0 {
                naming.insert(place, times);
            }
        }
    }
}

/// Whether a file is compiled for tests alone.
fn is_test(name: &str) -> bool {
    name == "tests.rs"
        || ["_tests.rs", "_properties.rs", "test_machine.rs", "value_table.rs"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// How often the code of a file names an agent: by its variant, or in a text by its command, its own name or its title. The names of
/// models, such as `claude-sonnet-5`, are words of their own.
fn times_named(text: &str) -> usize {
    let is_inline = |at: &usize| {
        let line = text[*at..].lines().nth(1).unwrap_or_default();
        line.contains("mod ") && line.ends_with('{')
    };
    let tests = text.match_indices("#[cfg(test)]\n").map(|(at, _)| at).find(is_inline);
    let (code, texts) = code_and_texts(&text[..tests.unwrap_or(text.len())]);
    let variants = Agent::ALL.map(|agent| format!("{agent:?}"));
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
    let by_variant = words.filter(|word| variants.iter().any(|variant| variant == word)).count();
    let programs = Agent::ALL.map(|agent| profile(agent).program);
    let words = texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '-'));
    let by_name = words.filter(|word| programs.contains(&word.to_lowercase().as_str())).count();
    by_variant + by_name
}

/// What is code, and the texts in it; comments are neither.
fn code_and_texts(source: &str) -> (String, Vec<&str>) {
    let (mut code, mut texts, mut rest) = (String::new(), Vec::new(), source);
    while let Some(at) = rest.find(['"', '/', '\'', '#']) {
        let (before, from) = rest.split_at(at);
        code.push_str(before);
        let is_raw = before.ends_with('r');
        let hashes = from.len() - from.trim_start_matches('#').len();
        let skipped = if from.starts_with("//") {
            from.find('\n').unwrap_or(from.len())
        } else if is_raw && from[hashes..].starts_with('"') {
            let end = format!("\"{}", &from[..hashes]);
            let text = &from[hashes + 1..];
            let length = text.find(&end).expect("a text has an end");
            texts.push(&text[..length]);
            hashes + 1 + length + end.len()
        } else if let Some(text) = from.strip_prefix('"') {
            let length = end_of_text(text);
            texts.push(&text[..length]);
            length + 2
        } else {
            // A character may be a quote; a lifetime is none.
            ["'\"'", "'\\\"'", "'\\''", "'#'", "'/'"]
                .into_iter()
                .find(|character| from.starts_with(character))
                .map_or(1, str::len)
        };
        code.push(' ');
        rest = &from[skipped..];
    }
    code.push_str(rest);
    (code, texts)
}

/// Where a text ends, after its opening quote.
fn end_of_text(text: &str) -> usize {
    let mut is_escaped = false;
    let is_end = |c: char| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    };
    text.find(is_end).expect("a text has an end")
}

#[test]
fn variants_and_texts_are_counted_and_comments_tests_and_models_are_not() {
    assert_eq!(times_named("let a = Agent::Codex; // Codex\n/// `codex`\nfn f() {}"), 1);
    assert_eq!(times_named(r##"f("codex", "~/.claude", r#"{"a": "opencode"}"#, '"', "CODEX_HOME")"##), 4);
    assert_eq!(
        times_named(r#"f("claude-sonnet-5 \"codex\"", b"x-codex-y", codex, 'a', "http://x/codex")"#),
        2
    );
    assert_eq!(times_named("#[cfg(test)]\nmod tests;\nAgent::Codex"), 1);
    assert_eq!(times_named("f()\n#[cfg(test)]\npub(super) mod tests {\nAgent::Codex }"), 0);
}

#[test]
fn every_agent_has_a_folder_of_its_own_and_is_in_our_image() {
    assert_eq!(Agent::ALL.map(Agent::as_str), FOLDERS);
    for agent in Agent::ALL {
        let folder = format!(" /usr/local/lib/node_modules/{}/\n", profile(agent).package);
        assert!(DOCKERFILE.contains(&folder), "{agent}");
    }
}
