//! What `sandbox doctor` tells of the engine and of the image, one finding for each thing that a run needs.

use std::io;
use std::os::unix::net::UnixStream;

use bollard::Docker;
use bollard::models::SystemInfo;
use cofferdam_core::{EngineAddress, Mode, NodeId, Policy, inside, show_bytes, with_causes};

use super::engine::Engine;
use super::image::Image;
use super::throwaway::{Question, ask};
use super::{DockerBackend, image_binary, socket_trial, validate};
use crate::backend::{Finding, Refusal, Status};
use crate::container::{
    AGENTS_DEADLINE, Bound, MOUNT_DEADLINE, MountTrial, agents_in, find_agents, mounts, scratch, socket,
    unknown_agents,
};
use crate::trial::trial;

/// An engine mounts for root alone, and an agent is who owns the files, unless that is root.
const OVERLAY_REMEDY: &str =
    "run it as the user who owns the repository, or export COFFERDAM_HOME=/a/folder/on/ext4/xfs/or/btrfs";

/// Whether an engine answers: the finding `engine`.
pub async fn engine_finding(address: &Result<EngineAddress, Refusal>) -> Finding {
    let engine = match address.clone().and_then(|address| Engine::at_address(&address)) {
        Ok(engine) => engine,
        Err(refusal) => return Finding::missing("engine", &refusal),
    };
    match engine.connect().await {
        Ok(docker) => answers(&engine, &docker).await,
        Err(refusal) => Finding::missing("engine", &refusal),
    }
}

async fn answers(engine: &Engine, docker: &Docker) -> Finding {
    let path = engine.path().display();
    match docker.version().await {
        Ok(found) => {
            let word = |part: Option<String>| part.unwrap_or_else(|| "?".to_owned());
            let (version, api, arch) = (word(found.version), word(found.api_version), word(found.arch));
            Finding::ok("engine", format!("{version} (interface {api}, {arch}) at {path}"))
        }
        Err(error) => {
            Finding::unknown("engine", format!("{path} does not say its version: {}", with_causes(&error)))
        }
    }
}

/// Asks the engine, looks at the image, and tries a sandbox.
pub(super) async fn check(backend: &DockerBackend, node: &NodeId) -> Vec<Finding> {
    let engine = engine_finding(&backend.address).await;
    let is_there = engine.status != Status::Missing;
    let mut findings = vec![engine, permission(&backend.address)];
    if !is_there {
        findings.push(Finding::unknown("sandbox", "none could be tried without an engine"));
        return findings;
    }
    let policy = Policy { mode: Mode::Docker, container: backend.container.clone(), ..Policy::default() };
    match look(backend, &policy, &mut findings).await {
        Ok(agents) => {
            let trial = trial(backend, &backend.options.state, node, policy.container).await;
            findings.extend([trial.sandbox(), trial.overlay(OVERLAY_REMEDY)]);
            findings.extend(agents);
        }
        Err(finding) => findings.extend([finding, Finding::unknown("sandbox", "none could be tried")]),
    }
    findings
}

/// Whether this user may talk to the engine.
fn permission(address: &Result<EngineAddress, Refusal>) -> Finding {
    let name = "engine_socket";
    let Ok(EngineAddress::Unix(path)) = address else {
        return Finding::unknown(name, "there is no socket to try");
    };
    match UnixStream::connect(path) {
        Ok(_) => Finding::ok(name, format!("this user may use {}", path.display())),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Finding::missing(
            name,
            &Refusal::new(
                format!("this user may not use {}", path.display()),
                "sudo usermod -aG docker \"$USER\", and log in again",
            ),
        ),
        Err(error) => Finding::unknown(name, format!("nobody answers at {}: {error}", path.display())),
    }
}

/// Everything up to the trial, and the agents in the image. An error is the finding after which there is nothing more
/// to ask.
async fn look(
    backend: &DockerBackend,
    policy: &Policy,
    findings: &mut Vec<Finding>,
) -> Result<Vec<Finding>, Finding> {
    let missing = |name: &'static str| move |refusal: Refusal| Finding::missing(name, &refusal);
    let docker = backend.connect().await.map_err(missing("engine"))?;
    let info = validate::ask_info(&docker).await.map_err(missing("engine"))?;
    findings.extend([users(&info), limits(&info), runtime(&info, policy)]);
    let image = backend.image(&docker, policy).await.map_err(missing("image"))?;
    findings.push(found_image(&image, policy));
    let binary = image_binary::check(backend, &docker, policy, &image).await;
    let is_usable = binary.is_ok();
    findings.push(worker_binary(backend, &image, binary));
    if !is_usable {
        return Ok(Vec::new());
    }
    findings.push(try_mount(backend, &docker, policy, &image).await);
    findings.push(socket(socket_trial::try_socket(backend, &docker, &info, policy, &image).await));
    Ok(agents(backend, &docker, policy, &image).await)
}

fn users(info: &SystemInfo) -> Finding {
    match validate::check_users(info) {
        Ok(()) => Finding::ok("engine_users", "the agent can be the owner of its workspace"),
        Err(refusal) => Finding::missing("engine_users", &refusal),
    }
}

fn limits(info: &SystemInfo) -> Finding {
    match validate::check_limits(info) {
        Ok(()) => {
            let version = info.cgroup_version.as_ref().map(|version| format!(" v{version}"));
            let version = version.unwrap_or_default();
            Finding::ok(
                "limits",
                format!("memory, processor and processes are held by the engine (cgroup{version})"),
            )
        }
        Err(refusal) => Finding::missing("limits", &refusal),
    }
}

fn runtime(info: &SystemInfo, policy: &Policy) -> Finding {
    let asked = policy.container.runtime.as_ref().map(|name| name.as_str());
    match (validate::check_runtime(info, policy), asked) {
        (Err(refusal), _) => Finding::missing("runtime", &refusal),
        (Ok(()), Some(name)) => Finding::ok("runtime", format!("{name} (sandbox.docker.runtime)")),
        (Ok(()), None) => {
            let own = info.default_runtime.as_deref().unwrap_or("the engine's own");
            Finding::ok("runtime", format!("{own} (the engine's default)"))
        }
    }
}

fn found_image(image: &Image, policy: &Policy) -> Finding {
    let name = &policy.container.image;
    let (os, architecture, size) = (&image.os, &image.architecture, show_bytes(image.bytes));
    Finding::ok("image", format!("{name} ({os}/{architecture}, {size})"))
}

fn worker_binary(backend: &DockerBackend, image: &Image, checked: Result<(), Refusal>) -> Finding {
    match (checked, backend.mounted_binary(image)) {
        (Err(refusal), _) => Finding::missing("worker_binary", &refusal),
        (Ok(()), Some(path)) => {
            Finding::ok("worker_binary", format!("this one is mounted ({})", path.display()))
        }
        (Ok(()), None) => Finding::ok(
            "worker_binary",
            format!("the image's own {}, of this version", image_binary::IN_IMAGE),
        ),
    }
}

/// Whether a container sees what is mounted into it.
async fn try_mount(backend: &DockerBackend, docker: &Docker, policy: &Policy, image: &Image) -> Finding {
    let trial = match MountTrial::new(&backend.options.state) {
        Ok(trial) => trial,
        Err(error) => {
            return Finding::unknown("mounts", format!("nothing could be put there to mount: {error}"));
        }
    };
    let mut bounds = vec![trial.bound()];
    bounds.extend(backend.mounted_binary(image).map(|binary| Bound::read_only(binary, inside::BINARY)));
    let mut command = backend.worker_command(image);
    command.truncate(1);
    command.extend(MountTrial::arguments());
    let (memories, deadline) = (Vec::new(), MOUNT_DEADLINE);
    let question = Question { name: "mount", policy, image, command, bounds, memories, deadline };
    let answer = ask(backend, docker, question).await;
    mounts(answer.as_ref().map(|answer| (answer.code, answer.stdout.as_str())).map_err(String::as_str))
}

/// Which agents the image has. They are started as an agent would be, each with `--version`.
async fn agents(backend: &DockerBackend, docker: &Docker, policy: &Policy, image: &Image) -> Vec<Finding> {
    let known = &backend.options.agents;
    let question = Question {
        name: "agents",
        policy,
        image,
        command: find_agents(known).into(),
        bounds: Vec::new(),
        memories: vec![scratch(policy)],
        deadline: AGENTS_DEADLINE,
    };
    match ask(backend, docker, question).await {
        Ok(answer) => agents_in(&answer.stdout, known, policy),
        Err(why) => unknown_agents(known, &why),
    }
}
