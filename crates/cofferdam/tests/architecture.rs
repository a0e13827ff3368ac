//! ARCHITECTURE.md leads somewhere: each path that it names is there.

use std::path::{Path, PathBuf};

/// Folders that a state folder has, and not this checkout.
const OF_THE_STATE_FOLDER: [&str; 2] = ["sandboxes/", "workspaces/"];

#[test]
fn each_path_that_the_architecture_names_is_there() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(checkout.join("ARCHITECTURE.md")).unwrap();
    let mut paths = Vec::new();
    for folder in ["crates", "tests", "bench", "docs", "deploy"] {
        collect(&checkout.join(folder), folder, &mut paths);
    }
    let named: Vec<&str> = named_paths(&page).collect();
    assert!(named.len() > 100, "the page names {} paths only", named.len());
    let missing: Vec<&str> = named.into_iter().filter(|named| !is_there(named, &paths)).collect();
    assert_eq!(missing, [""; 0], "ARCHITECTURE.md names what is not there");
}

/// What stands in backquotes outside of drawings and is a source file or a folder.
fn named_paths(page: &str) -> impl Iterator<Item = &str> {
    let outside_of_drawings = page.split("```").step_by(2);
    let quoted = outside_of_drawings.flat_map(|text| text.split('`').skip(1).step_by(2));
    quoted.filter(|text| {
        let is_path = text.ends_with(".rs") || (text.ends_with('/') && !text.starts_with('/'));
        is_path && !text.contains(' ') && !OF_THE_STATE_FOLDER.contains(text)
    })
}

/// The page leaves out what is clear from the row: the beginning of a path, and `cofferdam-` before a crate's name.
fn is_there(named: &str, paths: &[String]) -> bool {
    let end = format!("/{}", named.replace("cofferdam-", ""));
    paths.iter().any(|path| path.ends_with(&end))
}

/// Every file and folder below one, as the page would write it; folders end with a slash.
fn collect(folder: &Path, name: &str, paths: &mut Vec<String>) {
    paths.push(format!("/{}/", name.replace("cofferdam-", "")));
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the checkout can be read")
        .map(|entry| entry.expect("so can each of its entries").path())
        .collect();
    entries.sort();
    for path in entries {
        let name = format!("{name}/{}", path.file_name().unwrap_or_default().to_string_lossy());
        match path.is_dir() {
            true => collect(&path, &name, paths),
            false => paths.push(format!("/{}", name.replace("cofferdam-", ""))),
        }
    }
}

#[test]
fn a_path_that_is_not_there_is_found() {
    let page = "`execute/mod.rs`, `gone/nowhere.rs`, `x.json`\n```\n`drawn/away.rs`\n```\n`nofolder/`";
    assert_eq!(named_paths(page).collect::<Vec<_>>(), ["execute/mod.rs", "gone/nowhere.rs", "nofolder/"]);
    let paths = ["/crates/runner/src/execute/mod.rs".to_owned()];
    assert!(is_there("execute/mod.rs", &paths) && is_there("cofferdam-runner/src/execute/mod.rs", &paths));
    assert!(!is_there("gone/nowhere.rs", &paths) && !is_there("ute/mod.rs", &paths));
}
