//! The crates know each other in one direction only: ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What each crate may know, besides the binary, which names them all.
const EDGES: [(&str, &[&str]); 15] = [
    ("core", &[]),
    ("api", &["core"]),
    // What a mandate opens is held by this row and the next: nobody else may name the crate that issues them.
    ("mandate", &["core"]),
    ("store", &["core", "mandate"]),
    ("operations", &["core", "mandate", "store"]),
    ("walls", &["core"]),
    ("agent", &["core"]),
    ("net", &["core"]),
    ("broker", &["core", "net"]),
    ("direct", &["core", "net"]),
    ("sandbox", &["core", "walls"]),
    ("worker", &["core", "agent", "walls"]),
    ("runner", &["core", "agent", "direct", "net", "broker", "operations", "store", "sandbox"]),
    ("server", &["core", "api", "operations", "store"]),
    (
        "cofferdam",
        &[
            "core",
            "api",
            "operations",
            "store",
            "walls",
            "agent",
            "direct",
            "net",
            "broker",
            "sandbox",
            "worker",
            "runner",
            "server",
        ],
    ),
];

#[test]
fn no_crate_knows_another_that_it_is_not_to_know() {
    let known = edges();
    let listed: BTreeSet<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = known.keys().map(String::as_str).collect();
    assert_eq!(found, listed, "a crate without a row here");
    for (name, allowed) in EDGES {
        for other in &known[name] {
            assert!(allowed.contains(&other.as_str()), "{name} must not know {other}");
        }
    }
}

/// The API knows the record and asks nodes (`docs/decisions/0041-asking-nodes.md`): what it is made of has no way to start a process.
/// The supervisor in the same process has one, for its roles.
#[test]
fn nothing_that_the_api_is_made_of_starts_a_process() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("it is among the crates");
    let mut looked_at = 0;
    for name in ["core", "mandate", "api", "operations", "store", "server"] {
        let mut folders = vec![crates.join(format!("cofferdam-{name}/src"))];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("a folder of sources") {
                let path = entry.expect("an entry of a folder").path();
                match path.extension() {
                    _ if path.is_dir() => folders.push(path),
                    Some(extension) if extension == "rs" => {
                        looked_at += 1;
                        let text = fs::read_to_string(&path).expect("a file of sources");
                        // Tests at the end of a file may start themselves again.
                        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
                        let is_test = path.to_string_lossy().ends_with("tests.rs");
                        for way in ["Command::new", "process::Command", "posix_spawn", "libc::fork"] {
                            assert!(is_test || !text.contains(way), "{}: {way}", path.display());
                        }
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(looked_at > 100, "{looked_at} files");
}

/// What each of our crates depends on of ours, tests left out.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be started");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let short = |name: &str| name.strip_prefix("cofferdam-").unwrap_or(name).to_owned();
    let packages = metadata["packages"].as_array().expect("there are packages").iter();
    let ours = packages
        .filter(|package| package["manifest_path"].as_str().is_some_and(|path| path.contains("/crates/")));
    ours.map(|package| {
        let dependencies = package["dependencies"].as_array().expect("a package has dependencies").iter();
        let known = dependencies.filter(|dependency| dependency["kind"] != "dev");
        let known = known.filter_map(|dependency| dependency["name"].as_str());
        let known = known.filter(|name| name.starts_with("cofferdam-")).map(short).collect();
        (short(package["name"].as_str().expect("a package has a name")), known)
    })
    .collect()
}
