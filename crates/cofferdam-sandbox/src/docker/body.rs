//! A container as the engine is asked for it: every wall that the engine can put up, named one by one, so that no
//! default of an engine or of an image decides.

use std::collections::HashMap;
use std::path::Path;

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig, Mount,
    MountBindOptions, MountBindOptionsPropagationEnum, MountType, RestartPolicy, RestartPolicyNameEnum,
};
use cofferdam_core::{Network, Policy, WORKER_PIDS};

use super::image::Image;
use crate::container::{Bound, HOST_NAME, Memory, is_read_only};
use crate::local::Identity;

/// What a container is made of.
pub(super) struct Parts<'a> {
    pub(super) policy: &'a Policy,
    pub(super) image: &'a Image,
    pub(super) who: Identity,
    pub(super) labels: HashMap<String, String>,
    /// Our binary inside, and its arguments.
    pub(super) command: Vec<String>,
    pub(super) bounds: Vec<Bound>,
    pub(super) memories: Vec<Memory>,
    /// Volumes of the engine by where they are inside.
    pub(super) volumes: Vec<(String, String)>,
    /// Whether lines are written to it.
    pub(super) stdin: bool,
}

pub(super) fn body(parts: Parts<'_>) -> ContainerCreateBody {
    let Parts { policy, image, who, labels, command, bounds, memories, volumes, stdin } = parts;
    let (program, arguments) = command.split_first().expect("a container has a command");
    let limits = &policy.limits;
    let memory = i64::try_from(limits.memory_bytes).unwrap_or(i64::MAX);
    let network = match policy.network {
        Network::None | Network::Sealed => "none".to_owned(),
        Network::Open => policy.container.network.on_docker().to_owned(),
    };
    let host = HostConfig {
        network_mode: Some(network),
        extra_hosts: (policy.network == Network::Open).then(|| vec![format!("{HOST_NAME}:host-gateway")]),
        memory: Some(memory),
        // Memory and swap together: the same, so that there is no swap.
        memory_swap: Some(memory),
        nano_cpus: Some(i64::from(limits.cpus_milli) * 1_000_000),
        pids_limit: Some(i64::try_from(u64::from(limits.pids) + WORKER_PIDS).unwrap_or(i64::MAX)),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        privileged: Some(false),
        readonly_rootfs: Some(true),
        ipc_mode: Some("private".to_owned()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        // Our worker reaps; an engine that puts an init of its own in front would make it process 2.
        init: Some(false),
        runtime: policy.container.runtime.as_ref().map(|name| name.as_str().to_owned()),
        auto_remove: Some(false),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        log_config: Some(log()),
        tmpfs: Some(tmpfs(memories, &image.volumes, &bounds, &volumes)),
        mounts: Some(mounts(bounds, volumes, is_read_only(policy))),
        ..HostConfig::default()
    };
    ContainerCreateBody {
        image: Some(policy.container.image.with_tag()),
        entrypoint: Some(vec![program.clone()]),
        cmd: Some(arguments.to_vec()),
        user: Some(format!("{}:{}", who.uid, who.gid)),
        working_dir: Some("/".to_owned()),
        hostname: Some("cofferdam".to_owned()),
        labels: Some(labels),
        tty: Some(false),
        open_stdin: Some(stdin),
        stdin_once: Some(false),
        attach_stdin: Some(false),
        attach_stdout: Some(false),
        attach_stderr: Some(false),
        // An image's own would be one more process of ours.
        healthcheck: Some(HealthConfig { test: Some(vec!["NONE".to_owned()]), ..HealthConfig::default() }),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

/// The engine's log is the worker's stdout: kept whole, in a file that a slow reader does not hold up. What the
/// engine is set up with would be merged in, so each option is named. No engine takes "unlimited" for a size; this is
/// more than any disk.
fn log() -> HostConfigLogConfig {
    let options = [("max-size", "1000000g"), ("max-file", "1"), ("compress", "false"), ("mode", "blocking")];
    HostConfigLogConfig {
        typ: Some("json-file".to_owned()),
        config: Some(options.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
    }
}

/// The volumes are the workspace and its companions.
fn mounts(bounds: Vec<Bound>, volumes: Vec<(String, String)>, volumes_read_only: bool) -> Vec<Mount> {
    let bound = |bound: Bound| Mount {
        typ: Some(MountType::BIND),
        source: Some(text(&bound.source)),
        target: Some(text(&bound.target)),
        read_only: Some(bound.read_only),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            ..MountBindOptions::default()
        }),
        ..Mount::default()
    };
    let volume = |(name, target): (String, String)| Mount {
        typ: Some(MountType::VOLUME),
        source: Some(name),
        target: Some(target),
        read_only: Some(volumes_read_only),
        ..Mount::default()
    };
    bounds.into_iter().map(bound).chain(volumes.into_iter().map(volume)).collect()
}

/// Folders that the image declares as volumes would be writable, and stay behind: they are covered.
fn tmpfs(
    memories: Vec<Memory>,
    declared: &[String],
    bounds: &[Bound],
    volumes: &[(String, String)],
) -> HashMap<String, String> {
    let own: HashMap<String, String> =
        memories.into_iter().map(|memory| (text(&memory.target), memory.options)).collect();
    let taken = |path: &String| {
        own.contains_key(path)
            || bounds.iter().any(|bound| bound.target == Path::new(path))
            || volumes.iter().any(|(_, target)| target == path)
    };
    let covered: Vec<String> = declared.iter().filter(|path| !taken(path)).cloned().collect();
    own.into_iter().chain(covered.into_iter().map(|path| (path, "ro".to_owned()))).collect()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use cofferdam_core::WorkspaceAccess;

    use super::*;

    #[test]
    fn a_layered_workspace_is_read_only_exactly_if_the_policy_says_so() {
        for (access, wanted) in [(WorkspaceAccess::ReadOnly, true), (WorkspaceAccess::ReadWrite, false)] {
            let policy = Policy { workspace_access: access, ..Policy::default() };
            let kept =
                Bound { source: "/k".into(), target: "/run/cofferdam/session".into(), read_only: false };
            let volumes = vec![("v-0".to_owned(), "/workspace".to_owned())];
            let made = mounts(vec![kept], volumes, is_read_only(&policy));
            let seen: Vec<_> = made.iter().map(|mount| (mount.target.as_deref(), mount.read_only)).collect();
            let expected =
                [(Some("/run/cofferdam/session"), Some(false)), (Some("/workspace"), Some(wanted))];
            assert_eq!(seen, expected);
        }
    }
}
