//! The modules of a crate know each other in one direction only: ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The modules of a crate, the lowest first. A module knows those of the lines above its own: neither those below, nor its
/// neighbours.
type Layers = &'static [&'static [&'static str]];

/// What each module knows of the others.
type Edges = BTreeMap<String, BTreeSet<String>>;

const CRATES: [(&str, Layers); 2] = [
    (
        "cofferdam-sandbox",
        &[
            &["clock", "errors", "machine_name", "options", "random", "remove", "socket", "spread"],
            &["finding", "folder", "walls"],
            &["backend", "linux"],
            &["asker", "local"],
            &["supervision", "trials"],
            &["container", "tools", "trial"],
            &["apple", "docker", "host", "native"],
            &["roles"],
        ],
    ),
    (
        "cofferdam-runner",
        &[
            &["confined", "failpoints", "lease_times", "logins", "model_choice", "ownership"],
            &["progress", "raw_path", "work_tree"],
            &["home", "installation"],
            &["conversation", "node_lock", "programs", "redaction"],
            &["pristine_git"],
            &["workspace"],
            &["attachments", "egress"],
            &["node"],
            &["artifacts", "attempt_secrets"],
            &["dead_letters", "publish", "retention", "tools"],
            &["execute"],
            &["fuzzing", "recovery", "run_error"],
            &["dispatcher", "slot"],
            &["attached"],
            &["auth"],
        ],
    ),
];

#[test]
fn no_module_knows_another_that_it_is_not_to_know() {
    for (name, layers) in CRATES {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
        let edges = edges_in(&source);
        let found: BTreeSet<&str> = edges.keys().map(String::as_str).collect();
        let listed: BTreeSet<&str> = layers.iter().flat_map(|layer| layer.iter().copied()).collect();
        assert_eq!(
            found, listed,
            "{name}: a module without a place in the list, or a place without a module"
        );
        assert_eq!(complaints(layers, &edges), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_circle_a_neighbour_and_a_name_of_the_root_are_complained_of() {
    let layers: Layers = &[&["low"], &["left", "right"]];
    let judge = |low: &str, left: &str| {
        let texts = [("low", low), ("left", left), ("right", "use crate::low::Thing;")];
        let edges = texts.map(|(name, text)| (name.to_owned(), known_in(text, 1)));
        complaints(layers, &edges.into_iter().collect())
    };
    assert_eq!(judge("use std::io;", "use crate::{low::{A, B}, left::C};"), Vec::<String>::new());
    assert_eq!(judge("use crate::left::A;", "use crate::low::B;"), ["low must not know left"]);
    assert_eq!(judge("", "fn f() { crate::right::g() }"), ["left must not know right"]);
    assert_eq!(judge("", "use crate::{low, right as other};"), ["left must not know right"]);
    assert_eq!(judge("", "use super::right;"), ["left must not know super"]);
    assert_eq!(judge("", "use crate::Thing;"), ["left must not know Thing"]);
    assert_eq!(
        judge("// crate::left\n", "#[cfg(test)]\nmod tests { use crate::right; }"),
        Vec::<String>::new()
    );
}

fn complaints(layers: Layers, edges: &Edges) -> Vec<String> {
    let layer_of = |name: &str| layers.iter().position(|layer| layer.contains(&name));
    let mut complaints = Vec::new();
    for (name, known) in edges {
        for other in known.iter().filter(|other| *other != name) {
            if layer_of(other).is_none_or(|other| Some(other) >= layer_of(name)) {
                complaints.push(format!("{name} must not know {other}"));
            }
        }
    }
    complaints
}

/// What each module at the root of a crate knows, with all that is below it.
fn edges_in(source: &Path) -> Edges {
    let mut edges = Edges::new();
    for entry in fs::read_dir(source).expect("a crate has sources") {
        let path = entry.expect("the sources can be read").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a module has a name").to_owned();
        if name != "lib" && !is_of_tests(&path) {
            add_below(&path, 1, edges.entry(name).or_default());
        }
    }
    edges
}

fn add_below(path: &Path, depth: usize, known: &mut BTreeSet<String>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a module has files") {
            let path = entry.expect("the sources can be read").path();
            let is_root = path.file_name().is_some_and(|name| name == "mod.rs");
            add_below(&path, if is_root { depth } else { depth + 1 }, known);
        }
    } else if path.extension().is_some_and(|extension| extension == "rs") && !is_of_tests(path) {
        known.extend(known_in(&fs::read_to_string(path).expect("a source is text"), depth));
    }
}

/// Tests may know everything.
fn is_of_tests(path: &Path) -> bool {
    let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    name == "tests" || name.ends_with("_tests")
}

/// The names after `crate::` in the code of a module so many levels below the root, tests and comments left out; `super` if it
/// names the root in the other way.
fn known_in(text: &str, depth: usize) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut known: BTreeSet<String> = code.split("crate::").skip(1).flat_map(first_names).collect();
    if code.contains(&"super::".repeat(depth)) {
        known.insert("super".to_owned());
    }
    known
}

/// The first name of a path, or of each path in a group: `a::b`, `{a, b::{c, d}}`.
fn first_names(path: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![word(path)] };
    let mut names = vec![word(group)];
    let mut open = 1;
    for (at, c) in group.char_indices() {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            ',' if open == 1 => names.push(word(&group[at + 1..])),
            _ => {}
        }
        if open == 0 {
            break;
        }
    }
    names.retain(|name| !name.is_empty());
    names
}
