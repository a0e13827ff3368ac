//! What holds for the whole repository: who may depend on whom, what the tests are, and what the binary is made of.

use std::path::Path;
use std::process::Command;

use cofferdam_e2e::binary;
use cofferdam_test_marks::once;
use serde_json::Value;

/// DESIGN section 3, besides `core ← everything` and `all ← cofferdam`.
const EDGES: &[(&str, &[&str])] = &[
    ("cofferdam-core", &[]),
    ("cofferdam-api", &[]),
    ("cofferdam-store", &[]),
    ("cofferdam-walls", &[]),
    ("cofferdam-agent", &[]),
    ("cofferdam-broker", &[]),
    ("cofferdam-direct", &[]),
    ("cofferdam-sandbox", &["cofferdam-walls"]),
    ("cofferdam-worker", &["cofferdam-agent", "cofferdam-walls"]),
    (
        "cofferdam-runner",
        &["cofferdam-store", "cofferdam-sandbox", "cofferdam-agent", "cofferdam-broker", "cofferdam-direct"],
    ),
    ("cofferdam-server", &["cofferdam-api", "cofferdam-store"]),
];

#[once]
#[test]
fn crates_depend_on_each_other_only_as_the_design_lists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--manifest-path"]);
    let Ok(output) = cargo.arg(root.join("Cargo.toml")).output() else {
        eprintln!("skipped: there is no cargo here");
        return;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("a list of packages");
    let mut seen = 0;
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        if !package["manifest_path"].as_str().is_some_and(|path| path.contains("/crates/")) {
            continue;
        }
        seen += 1;
        for needed in own_dependencies(package) {
            assert!(
                is_listed(name, &needed),
                "{name} depends on {needed}, which DESIGN section 3 does not list"
            );
        }
    }
    assert!(seen >= 8, "only {seen} crates were found");
}

/// Our own crates that a package is built from; what only its tests use is not in the binary.
fn own_dependencies(package: &Value) -> Vec<String> {
    let all = package["dependencies"].as_array().expect("a list of dependencies").iter();
    all.filter(|dependency| dependency["kind"] != "dev")
        .filter_map(|dependency| dependency["name"].as_str().map(str::to_owned))
        .filter(|name| name.starts_with("cofferdam"))
        .collect()
}

fn is_listed(name: &str, needed: &str) -> bool {
    let listed = EDGES.iter().find(|(from, _)| *from == name);
    name == "cofferdam"
        || (needed == "cofferdam-core" && listed.is_some())
        || listed.is_some_and(|(_, allowed)| allowed.contains(&needed))
}

/// A file that is no module of its program is compiled by nobody, and its tests run nowhere.
#[once]
#[test]
fn every_file_of_tests_is_a_module_of_its_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for package in ["crates/cofferdam", "crates/cofferdam-runner", "crates/cofferdam-store", "tests/e2e"] {
        let tests = root.join(package).join("tests");
        let program = std::fs::read_to_string(tests.join("main.rs")).expect("a program of tests");
        for entry in std::fs::read_dir(&tests).expect("a folder of tests") {
            let path = entry.expect("a readable folder").path();
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a plain name");
            let is_code = path.is_file() || path.join("mod.rs").exists();
            let is_named = program.lines().any(|line| line == format!("mod {name};"));
            assert!(!is_code || name == "main" || is_named, "{} is not in main.rs", path.display());
        }
    }
}

/// A program header of this type names a loader, which an image need not have.
const PT_INTERP: u32 = 3;
/// A section of this type holds the symbols.
const SHT_SYMTAB: u32 = 2;
/// What would load the host's modules into a static binary. `getaddrinfo` and `getpwuid_r` are there and are our own,
/// which load nothing: the last of these is what those of the C library call.
const NSS: &[&str] = &[
    "gethostbyname",
    "gethostbyname_r",
    "getpwnam",
    "getpwnam_r",
    "getpwuid",
    "getgrnam",
    "getgrnam_r",
    "getgrgid",
    "getgrgid_r",
    "getgrouplist",
    "initgroups",
    "__nss_lookup_function",
];

struct Elf(Vec<u8>);

impl Elf {
    fn number(&self, at: usize, bytes: usize) -> usize {
        let little = self.0[at..at + bytes].iter().rev();
        little.fold(0, |number, &byte| number << 8 | usize::from(byte))
    }

    fn program_types(&self) -> Vec<usize> {
        let (start, size, count) = (self.number(32, 8), self.number(54, 2), self.number(56, 2));
        (0..count).map(|index| self.number(start + index * size, 4)).collect()
    }

    /// The offsets of the headers of all sections.
    fn sections(&self) -> Vec<usize> {
        let (start, size, count) = (self.number(40, 8), self.number(58, 2), self.number(60, 2));
        (0..count).map(|index| start + index * size).collect()
    }

    fn symbols(&self) -> Vec<String> {
        let sections = self.sections();
        let Some(&table) = sections.iter().find(|&&at| self.number(at + 4, 4) == SHT_SYMTAB as usize) else {
            return Vec::new();
        };
        let names = self.number(sections[self.number(table + 40, 4)] + 24, 8);
        let (start, size) = (self.number(table + 24, 8), self.number(table + 32, 8));
        let name = |symbol: usize| {
            let rest = &self.0[names + self.number(symbol, 4)..];
            let end = rest.iter().position(|&byte| byte == 0).unwrap_or(0);
            String::from_utf8_lossy(&rest[..end]).into_owned()
        };
        (start..start + size).step_by(24).map(name).collect()
    }
}

#[once]
#[test]
fn the_binary_needs_no_loader_and_asks_no_name_service() {
    let elf = Elf(std::fs::read(binary()).expect("the binary is readable"));
    assert_eq!((&elf.0[..4], elf.0[4], elf.0[5]), (&b"\x7fELF"[..], 2, 1), "64 bits, little endian");
    assert!(!elf.program_types().contains(&(PT_INTERP as usize)), "it is linked dynamically");
    let symbols = elf.symbols();
    assert!(symbols.iter().any(|name| name == "main"), "the symbols were stripped");
    let found: Vec<&String> = symbols.iter().filter(|name| NSS.contains(&name.as_str())).collect();
    assert!(found.is_empty(), "{found:?}");
}
