//! The files of `deploy/`: others' tools read them, and what they start is there.

use std::path::PathBuf;
use std::process::Command;

use cofferdam_e2e::{Fixture, binary};
use cofferdam_test_marks::once;
use serde_json::Value;

fn deploy(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

#[once]
#[test]
fn the_unit_is_one_that_systemd_reads() {
    let fixture = Fixture::without_repository();
    let unit = std::fs::read_to_string(deploy("cofferdam.service")).expect("the unit is there");
    let program = binary();
    let here = unit.replace("/usr/local/bin/cofferdam", program.to_str().expect("a plain path"));
    assert_ne!(unit, here);
    let path = fixture.path("cofferdam.service");
    std::fs::write(&path, here).expect("a new file");
    let Ok(verified) = Command::new("systemd-analyze").arg("verify").arg(&path).output() else {
        eprintln!("skipped: there is no systemd-analyze");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    let about_ours: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("cofferdam.service"))
        // Of systemd 254, and older ones only say so.
        .filter(|line| !line.contains("DelegateSubgroup"))
        .collect();
    assert!(about_ours.is_empty(), "{said}");
}

#[once]
#[test]
fn the_compose_file_starts_a_database_and_two_nodes_with_commands_that_there_are() {
    let script = "import json, sys, yaml; print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let read = Command::new("python3").args(["-c", script]).arg(deploy("compose.yaml")).output();
    let Some(read) = read.ok().filter(|read| read.status.success()) else {
        eprintln!("skipped: there is no python3 with yaml");
        return;
    };
    let compose: Value = serde_json::from_slice(&read.stdout).expect("JSON");
    let services = compose["services"].as_object().expect("services");
    assert!(services.contains_key("database"));
    let nodes: Vec<&Value> = services.values().filter(|service| service["command"].is_array()).collect();
    assert_eq!(nodes.len(), 2);
    let fixture = Fixture::without_repository();
    for node in nodes {
        let words = node["command"].as_array().expect("a list").iter();
        let words: Vec<&str> = words.map(|word| word.as_str().expect("a word")).collect();
        let help = fixture.cofferdam(words.iter().chain(&["--help"]));
        assert_eq!(help.code, Some(0), "cofferdam {words:?}: {}", help.stderr);
        let named = |key: &str| node["environment"][key].as_str().is_some();
        assert!(named("COFFERDAM_STORE_URL"), "both have the same record: {node}");
        assert_eq!(node["depends_on"]["database"]["condition"], "service_healthy");
    }
}
