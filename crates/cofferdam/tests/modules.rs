//! The modules of a crate know each other in one direction only: ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Where something is in its crate: `["workspace", "kept", "clear"]`.
type Place = Vec<String>;

/// A file of a crate: the module that it is, and its text.
struct Source {
    module: Place,
    text: String,
}

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
        let edges = edges_below(&[], &sources_of(name));
        let found: BTreeSet<&str> = edges.keys().map(String::as_str).collect();
        let listed: BTreeSet<&str> = layers.iter().flat_map(|layer| layer.iter().copied()).collect();
        assert_eq!(
            found, listed,
            "{name}: a module without a place in the list, or a place without a module"
        );
        assert_eq!(complaints(layers, &edges), Vec::<String>::new(), "{name}");
    }
}

/// Whatever is inside a module has no list: it is enough that no two parts of it need each other. What the module's own file
/// defines belongs to all of them, as a type whose operations are a file each does.
#[test]
fn no_parts_of_a_module_know_each_other_in_a_circle() {
    for (name, _) in CRATES {
        let sources = sources_of(name);
        let wholes: BTreeSet<&[String]> =
            sources.iter().filter_map(|source| Some(source.module.split_last()?.1)).collect();
        let wholes = wholes.into_iter().filter(|whole| !whole.is_empty());
        let circles: BTreeMap<String, Edges> = wholes
            .map(|whole| (whole.join("::"), circle_in(edges_below(whole, &sources))))
            .filter(|(_, circle)| !circle.is_empty())
            .collect();
        assert_eq!(circles, BTreeMap::new(), "{name}: move what is shared to where neither needs the other");
    }
}

#[test]
fn a_circle_a_neighbour_and_a_name_of_the_root_are_complained_of() {
    let layers: Layers = &[&["low"], &["left", "right"]];
    let judge = |low: &str, left: &str| {
        let texts = [("low", low), ("left", left), ("right", "use crate::low::Thing;")];
        complaints(layers, &edges_below(&[], &texts.map(source)))
    };
    assert_eq!(judge("use std::io;", "use crate::{low::{A, B}, left::C};"), Vec::<String>::new());
    assert_eq!(judge("use crate::left::A;", "use crate::low::B;"), ["low must not know left"]);
    assert_eq!(judge("", "fn f() { crate::right::g() }"), ["left must not know right"]);
    assert_eq!(judge("", "use crate::{low, right as other};"), ["left must not know right"]);
    assert_eq!(judge("", "use super::right;"), ["left must not know right"]);
    assert_eq!(judge("", "use crate::Thing;"), ["left must not know Thing"]);
    assert_eq!(
        judge("// crate::left\n", "#[cfg(test)]\nmod tests { use crate::right; }"),
        Vec::<String>::new()
    );
    assert_eq!(judge("", "#[cfg(test)]\nmod tests;\nuse crate::right;"), ["left must not know right"]);
}

#[test]
fn a_circle_inside_a_module_is_found_however_it_is_written() {
    let judge = |whole: &str, left: &str, right: &str| {
        let texts =
            [("whole", whole), ("whole::left", left), ("whole::right::deep", right), ("whole::apart", left)];
        circle_in(edges_below(&["whole".to_owned()], &texts.map(source)))
    };
    let found = |circle: Edges| circle.into_keys().collect::<Vec<_>>();
    let (right, left) = ("use super::right::Thing;", "use super::super::left::Other;");
    assert_eq!(found(judge("", right, left)), ["left", "right"]);
    assert_eq!(found(judge("", "use crate::{io, whole::{Own, right}};", left)), ["left", "right"]);
    assert_eq!(found(judge("pub use right::{A, Thing as B};", "use super::B;", left)), ["left", "right"]);
    assert_eq!(found(judge("use self::left::f;", right, "use crate::whole::f;")), ["left", "right"]);
    assert_eq!(found(judge("use left::Other;", right, "use super::super::Own;")), Vec::<String>::new());
    assert_eq!(found(judge("", "use super::Own;", left)), Vec::<String>::new());
}

fn source((module, text): (&str, &str)) -> Source {
    Source { module: module.split("::").map(str::to_owned).collect(), text: text.to_owned() }
}

fn complaints(layers: Layers, edges: &Edges) -> Vec<String> {
    let layer_of = |name: &str| layers.iter().position(|layer| layer.contains(&name));
    let mut complaints = Vec::new();
    for (name, known) in edges {
        for other in known {
            if layer_of(other).is_none_or(|other| Some(other) >= layer_of(name)) {
                complaints.push(format!("{name} must not know {other}"));
            }
        }
    }
    complaints
}

/// What is left when whatever knows none of the others is taken away, and whatever none of them knows, again and again.
fn circle_in(mut edges: Edges) -> Edges {
    loop {
        let before = edges.len();
        let all: BTreeSet<String> = edges.keys().cloned().collect();
        for known in edges.values_mut() {
            known.retain(|other| all.contains(other));
        }
        let known: BTreeSet<String> = edges.values().flatten().cloned().collect();
        edges.retain(|name, others| !others.is_empty() && known.contains(name));
        if edges.len() == before {
            return edges;
        }
    }
}

/// What each part of a module, with all that is below it, names of the others; the parts of the root are its modules.
fn edges_below(whole: &[String], sources: &[Source]) -> Edges {
    let part_in = |place: &Place| place.strip_prefix(whole)?.first().cloned();
    let mut edges = Edges::new();
    for source in sources {
        if let Some(part) = part_in(&source.module) {
            edges.entry(part).or_default();
        }
    }
    // What the whole takes from a part is named by the others as if it were the whole's own.
    let own = sources.iter().find(|source| source.module == whole && !whole.is_empty());
    let taken = own.map(taken_by).unwrap_or_default();
    let taken = taken.iter().filter_map(|(name, place)| Some((name, part_in(place)?)));
    let taken: BTreeMap<&String, String> = taken.filter(|(_, part)| edges.contains_key(part)).collect();
    for source in sources {
        let Some(part) = part_in(&source.module) else { continue };
        let named = named_in(source).iter().filter_map(part_in).collect::<Vec<_>>();
        let named = named.into_iter().map(|name| taken.get(&name).cloned().unwrap_or(name));
        edges.entry(part.clone()).or_default().extend(named.filter(|other| *other != part));
    }
    edges
}

fn sources_of(name: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    read_below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src"), &[], &mut sources);
    sources.retain(|source| source.module != ["lib"]);
    sources
}

fn read_below(folder: &Path, module: &[String], sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a module has files") {
        let path = entry.expect("the sources can be read").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a module has a name");
        // Tests may know everything.
        if name == "tests" || name.ends_with("_tests") {
            continue;
        }
        let mut module = module.to_vec();
        if name != "mod" {
            module.push(name.to_owned());
        }
        if path.is_dir() {
            read_below(&path, &module, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source is text");
            sources.push(Source { module, text });
        }
    }
}

/// The code of a text, tests and comments left out.
fn code_of(text: &str) -> String {
    let is_here = |at: &usize| text[*at..].lines().nth(1).is_some_and(|line| line.contains('{'));
    let tests = text.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at).find(is_here);
    let lines = text[..tests.unwrap_or(text.len())].lines();
    lines.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// All that a file names of its crate, from the root.
fn named_in(source: &Source) -> Vec<Place> {
    let code = code_of(&source.text);
    let starts = ["crate::", "self::", "super::"].into_iter().flat_map(|word| code.match_indices(word));
    let is_start = |at: usize| !code[..at].ends_with(|c: char| c == ':' || c == '_' || c.is_alphanumeric());
    let starts = starts.map(|(at, _)| at).filter(|at| is_start(*at));
    starts.flat_map(|at| places(&code[at..], &source.module)).map(|(_, place)| place).collect()
}

/// The names that a file takes from elsewhere, and where they are, if it is in its crate.
fn taken_by(source: &Source) -> Vec<(String, Place)> {
    let code = code_of(&source.text);
    let statements = code.split("use ").skip(1);
    statements.flat_map(|statement| places(statement, &source.module)).collect()
}

/// The places that a path in a module leads to, each with its last name: several for `a::{b, c::{d, e as f}}`.
fn places(path: &str, module: &[String]) -> Vec<(String, Place)> {
    let path = path.trim_start();
    if let Some(rest) = path.strip_prefix("crate::") {
        return places(rest, &[]);
    }
    if let Some(rest) = path.strip_prefix("super::") {
        return places(rest, module.split_last().map_or(&[], |(_, above)| above));
    }
    if let Some(rest) = path.strip_prefix("self::") {
        return places(rest, module);
    }
    if let Some(group) = path.strip_prefix('{') {
        return members(group).into_iter().flat_map(|member| places(member, module)).collect();
    }
    let end = path.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(path.len());
    let (name, rest) = path.split_at(end);
    let mut place = module.to_vec();
    if name != "self" {
        place.push(name.to_owned());
    }
    match (rest.strip_prefix("::"), rest.trim_start().strip_prefix("as ")) {
        (Some(below), _) => places(below, &place),
        (None, Some(other)) => {
            let other = other.trim_start().split(|c: char| c != '_' && !c.is_alphanumeric()).next();
            vec![(other.unwrap_or_default().to_owned(), place)]
        }
        (None, None) => place.last().cloned().map(|last| (last, place)).into_iter().collect(),
    }
}

/// What stands between the commas of a group, up to its end.
fn members(group: &str) -> Vec<&str> {
    let (mut members, mut open, mut from) = (Vec::new(), 1, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 || (c == ',' && open == 1) {
            members.push(&group[from..at]);
            from = at + 1;
        }
        if open == 0 {
            break;
        }
    }
    members.retain(|member| !member.trim().is_empty());
    members
}
