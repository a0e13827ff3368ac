//! What this engine can and cannot hold.

use bollard::Docker;
use bollard::models::SystemInfo;
use cofferdam_core::{Network, Policy};

use super::engine::{is_missing, message_of};
use super::{DockerBackend, image_binary, known_engine, socket_trial};
use crate::backend::{Refusal, RefusalKind};
use crate::container::check_mounts;

/// Refuses what the engine cannot hold.
pub(super) async fn validate(backend: &DockerBackend, policy: &Policy) -> Result<(), Refusal> {
    let engine = backend.engine()?;
    check_mounts(policy, [engine.path()].into_iter())?;
    let docker = backend.connect().await?;
    let state = &backend.options.state;
    let suits = |info: &SystemInfo| {
        check_users(info).and_then(|()| check_limits(info)).and_then(|()| check_runtime(info, policy))
    };
    let recalled = known_engine::recall(state, engine).filter(|info| suits(info).is_ok());
    let info = match recalled {
        Some(info) => info,
        None => {
            let info = ask_info(&docker).await?;
            suits(&info)?;
            known_engine::remember(state, engine, &info);
            info
        }
    };
    check_network(&docker, policy).await?;
    let image = backend.image(&docker, policy).await?;
    image_binary::check(backend, &docker, policy, &image).await?;
    if policy.network == Network::Sealed || policy.egress.model {
        socket_trial::try_socket(backend, &docker, &info, policy, &image).await?;
    }
    Ok(())
}

/// What the engine says that it can do.
pub(super) async fn ask_info(docker: &Docker) -> Result<SystemInfo, Refusal> {
    docker.info().await.map_err(|error| {
        Refusal::new(format!("the engine does not say what it can do: {}", message_of(&error)), "docker info")
            .about(RefusalKind::DaemonUnavailable)
    })
}

/// Where the engine shifts users, the workspace's owner is somebody else inside, and may be root.
pub(super) fn check_users(info: &SystemInfo) -> Result<(), Refusal> {
    let options = info.security_options.as_deref().unwrap_or_default();
    let named = |name: &str| {
        options.iter().any(|option| option.split(',').any(|part| part == format!("name={name}")))
    };
    let why = if named("rootless") {
        "it runs without root, and there the owner of the workspace is root inside"
    } else if named("userns") {
        "it shifts users (userns-remap), and there nobody inside owns the workspace"
    } else {
        return Ok(());
    };
    Err(Refusal::new(
        format!("this engine cannot run the agent as the owner of its workspace: {why}"),
        "use --mode native, or an engine of the system",
    ))
}

pub(super) fn check_limits(info: &SystemInfo) -> Result<(), Refusal> {
    let held = [
        ("memory", info.memory_limit),
        ("processor time", info.cpu_cfs_quota.or(info.cpu_cfs_period)),
        ("processes", info.pids_limit),
    ];
    let missing: Vec<&str> =
        held.iter().filter(|(_, can)| *can != Some(true)).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        format!("this engine cannot limit {}", missing.join(" and ")),
        "docker info lists what is missing; boot with cgroup_enable=memory, or use --mode native",
    ))
}

pub(super) fn check_runtime(info: &SystemInfo, policy: &Policy) -> Result<(), Refusal> {
    let Some(wanted) = &policy.container.runtime else { return Ok(()) };
    let mut known: Vec<&str> = info.runtimes.iter().flatten().map(|(name, _)| name.as_str()).collect();
    let wanted = wanted.as_str();
    if known.contains(&wanted) {
        return Ok(());
    }
    known.sort_unstable();
    Err(Refusal::new(
        format!("the engine has no runtime {wanted}; it has {}", known.join(", ")),
        "set sandbox.docker.runtime to one of them",
    ))
}

async fn check_network(docker: &Docker, policy: &Policy) -> Result<(), Refusal> {
    if policy.network.is_closed() {
        return Ok(());
    }
    let name = policy.container.network.on_docker();
    let refuse =
        |problem: String| Refusal::new(problem, "docker network ls; then set SANDBOX_DOCKER_NETWORK");
    match docker.inspect_network(name, None).await {
        Ok(found) if found.driver.as_deref() == Some("host") => {
            Err(refuse(format!("the network {name} is the host's own: it has no wall")))
        }
        Ok(_) => Ok(()),
        Err(error) if is_missing(&error) => Err(refuse(format!("the engine has no network {name}"))),
        Err(error) => {
            Err(refuse(format!("the engine cannot use the network {name}: {}", message_of(&error))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn able() -> SystemInfo {
        SystemInfo {
            memory_limit: Some(true),
            cpu_cfs_quota: Some(true),
            pids_limit: Some(true),
            ..SystemInfo::default()
        }
    }

    #[test]
    fn an_engine_that_cannot_hold_a_limit_is_refused_and_the_limit_named() {
        assert_eq!(check_limits(&able()), Ok(()));
        let without = SystemInfo { pids_limit: Some(false), ..able() };
        assert!(check_limits(&without).unwrap_err().problem.contains("processes"));
        // An engine that does not say so cannot be taken at its word.
        let silent = SystemInfo { memory_limit: None, ..able() };
        assert!(check_limits(&silent).unwrap_err().problem.contains("memory"));
    }

    #[test]
    fn an_engine_that_shifts_users_is_refused() {
        let with = |option: &str| SystemInfo { security_options: Some(vec![option.to_owned()]), ..able() };
        assert_eq!(check_users(&with("name=seccomp,profile=default")), Ok(()));
        assert!(check_users(&with("name=rootless")).is_err());
        assert!(check_users(&with("name=userns")).is_err());
    }
}
