use serde_json::{Value, json};

use super::*;
use crate::settings::Settings;

fn read(sandbox: Value) -> Result<SandboxSettings, String> {
    serde_json::from_value::<Settings>(json!({ "sandbox": sandbox }))
        .map(|settings| settings.sandbox)
        .map_err(|error| error.to_string())
}

#[test]
fn what_is_not_set_is_told_apart_from_the_default() {
    let settings = read(json!({})).unwrap();
    assert_eq!(settings, SandboxSettings::default());
    assert_eq!(settings.docker.image.as_str(), "cofferdam/worker:latest");
    assert_eq!(settings.docker.network.on_docker(), "bridge");
    assert_eq!(
        (settings.docker.memory, settings.docker.cpus, settings.docker.pids_limit),
        (None, None, None)
    );
    assert_eq!((settings.docker.runtime, settings.docker.host), (None, None));
    assert_eq!(settings.apple.runtime_command.as_str(), "container");
    assert_eq!(settings.apple.network.name(), None);
    assert_eq!(settings.rewrite_loopback, RewriteLoopback::All);
}

#[test]
fn the_settings_of_other_tools_for_containers_load_as_they_are() {
    let settings = read(json!({
        "docker": {
            "image": "tinyclaw/agent-runner:latest",
            "network": "default",
            "memory": "2g",
            "cpus": "1.0",
            "pids_limit": 256
        },
        "apple": {
            "runtime_command": "apple-container",
            "image": "tinyclaw/agent-runner:latest",
            "network": "default",
            "memory": "2g",
            "cpus": "1.0"
        }
    }))
    .unwrap();
    let (docker, apple) = (settings.docker, settings.apple);
    assert_eq!(docker.image.as_str(), "tinyclaw/agent-runner:latest");
    assert_eq!(docker.network.on_docker(), "bridge");
    assert_eq!(docker.memory.map(MemorySize::bytes), Some(2 << 30));
    assert_eq!(docker.cpus.map(Cpus::milli), Some(1000));
    assert_eq!(docker.pids_limit.map(PidsLimit::count), Some(256));
    assert_eq!(apple.runtime_command.as_str(), "apple-container");
    assert_eq!((apple.image, apple.network), (docker.image, docker.network));
    assert_eq!((apple.memory, apple.cpus, apple.pids_limit), (docker.memory, docker.cpus, None));
}

#[test]
fn each_key_takes_a_good_value_and_prints_it() {
    let written = json!({
        "docker": {
            "image": "ghcr.io/a/b:1", "network": "agents", "memory": "512m", "cpus": "0.5", "pids_limit": 64,
            "runtime": "runsc", "host": "unix:///run/docker.sock"
        },
        "apple": {
            "runtime_command": "/usr/bin/podman", "image": "localhost/x", "network": "agents", "memory": "1g",
            "cpus": "2", "pids_limit": 1
        },
        "rewrite_loopback": ["API_URL"]
    });
    let printed = serde_json::to_value(read(written.clone()).unwrap()).unwrap();
    for (key, value) in written.as_object().unwrap() {
        assert_eq!(&printed[key], value);
    }
}

#[test]
fn numbers_are_taken_where_people_write_them() {
    let docker =
        read(json!({"docker": {"memory": 67108864, "cpus": 1.5, "pids_limit": "9"}})).unwrap().docker;
    assert_eq!(docker.memory.map(MemorySize::bytes), Some(64 << 20));
    assert_eq!(docker.cpus.map(Cpus::milli), Some(1500));
    assert_eq!(docker.pids_limit.map(PidsLimit::count), Some(9));
}

#[test]
fn each_key_refuses_a_bad_value_and_says_what_to_type() {
    for (object, key, value, said) in [
        ("docker", "image", json!("openTiger/worker:latest"), "type `opentiger/worker:latest`"),
        ("docker", "network", json!("host"), "type `bridge`"),
        ("docker", "memory", json!("2q"), "`2q` is not a size; type a size such as `512m`"),
        ("docker", "memory", json!(2), "`2` is less than 16 MiB; type a size"),
        ("docker", "cpus", json!("0"), "`0` is not between 0.01 and 1024 processors; type a number"),
        ("docker", "cpus", json!(-1), "`-1` is not a number of processors; type a number"),
        ("docker", "pids_limit", json!(0), "`0` is not a whole number between 1 and 4194304; type a number"),
        ("docker", "pids_limit", json!(-1), "`-1` is not a whole number"),
        ("docker", "pids_limit", json!(1.5), "`1.5` is not a whole number"),
        ("docker", "cpus", json!(true), "type a text such as"),
        ("docker", "runtime", json!("run sc"), "`run sc` is not the name of a runtime; type a name"),
        (
            "docker",
            "host",
            json!("docker.sock"),
            "`docker.sock` is not the address of an engine; type an address",
        ),
        ("apple", "runtime_command", json!("podman run"), "`podman run` has a space in it"),
        ("apple", "image", json!("-x"), "type a name such as `cofferdam/worker:latest`"),
        ("apple", "network", json!("container:x"), "type `bridge`"),
        ("apple", "memory", json!("lots"), "`lots` is not a size"),
        ("apple", "cpus", json!("two"), "`two` is not a number of processors"),
        ("apple", "pids_limit", json!("all"), "`all` is not a whole number"),
    ] {
        let error = read(json!({ object: { key: value } })).unwrap_err();
        assert!(error.contains(said), "{object}.{key}: {error}");
    }
    assert!(read(json!({"rewrite_loopback": "some"})).unwrap_err().contains("type \"all\""));
}

#[test]
fn a_key_that_is_not_known_is_an_error_at_every_level() {
    for sandbox in [
        json!({"dokcer": {}}),
        json!({"docker": {"privileged": true}}),
        json!({"docker": {"runtime_command": "podman"}}),
        json!({"apple": {"runtime": "runsc"}}),
    ] {
        assert!(read(sandbox.clone()).unwrap_err().contains("unknown field"), "{sandbox}");
    }
}
