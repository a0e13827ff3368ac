//! What holds for the whole repository: what the tests are, and what the binary is made of.

use std::path::Path;

use cofferdam_e2e::binary;
use cofferdam_test_marks::once;

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
