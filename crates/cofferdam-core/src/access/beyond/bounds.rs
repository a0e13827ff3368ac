//! What binds whoever has not the scope `system`, as data: `docs/reference/access.md` lists it.

/// How one field is bound.
#[derive(Debug)]
pub(in crate::access) struct Bound {
    /// The field, as [`super::Beyond`] names it.
    pub(in crate::access) field: &'static str,
    /// What may be in it.
    pub(in crate::access) within: &'static str,
    /// Which settings allow more; `None` where only the scope `system` does.
    pub(in crate::access) setting: Option<&'static str>,
}

/// Everything that is bound.
pub(in crate::access) const BOUNDS: &[Bound] = &[
    bound("options.mode", "a mode of the list; without a key never `host`", Some("`service.allowed_modes`")),
    bound(
        "options.network",
        "`sealed` or `none`; `open` where the list has the mode with `:open`, and without a key never",
        Some("`service.allowed_modes`"),
    ),
    bound(
        "options.policy",
        "a policy whose own mode and network are of the list",
        Some("`service.allowed_modes`"),
    ),
    bound("options.env", "names of the list, or of the policy's", Some("`sandbox.env_allowlist`")),
    bound("options.mounts", "nothing", None),
    bound("options.unmask", "nothing that the settings or the policy hide", Some("`sandbox.mask.show`")),
    bound(
        "options.forward",
        "services of `sandbox.forwards` that every run has, or that are of the list",
        Some("`service.allowed_forwards`"),
    ),
    bound(
        "options.image",
        "the image of the settings",
        Some("`sandbox.docker.image` or `sandbox.apple.image`"),
    ),
    bound("options.vendor_tools", "nothing", None),
    bound(
        "options.allow",
        "names of sets, and what they and the policy stand for",
        Some("`egress.sets`, or with the `allow` of a policy"),
    ),
    bound("options.memory", "at most what the settings or the policy give", Some("`sandbox.limits.memory`")),
    bound("options.cpus", "at most what the settings or the policy give", Some("`sandbox.limits.cpus`")),
    bound("options.pids", "at most what the settings or the policy give", Some("`sandbox.limits.pids`")),
    bound("options.disk", "at most what the settings or the policy give", Some("`sandbox.limits.disk`")),
    bound("options.timeout_ms", "at most the setting", Some("`service.max_execution_time_ms`")),
    bound(
        "repo",
        "a registered project; an address of the list, or without a list one over https at a host that is public and not \
         this machine; a path below the roots",
        Some("`service.allowed_repos` (addresses) or `service.allowed_roots` (paths)"),
    ),
    bound("branch", "a branch that matches the patterns of the repository", Some("`service.allowed_push`")),
    bound(
        "options.push",
        "a branch that matches the patterns of the repository",
        Some("`service.allowed_push`"),
    ),
    bound(
        "container",
        "network, runtime, program and rewritten addresses of containers are those of the settings",
        Some("`sandbox.docker` or `sandbox.apple`"),
    ),
    bound(
        "limits",
        "open files and output are at most what the settings or the policy give, and limits are never best effort",
        Some("`sandbox.limits`"),
    ),
    bound("conversation", "none: messages to agents are sent on the machine itself", None),
    bound("workspace", "a copy or a layer, never the folder itself", None),
];

const fn bound(field: &'static str, within: &'static str, setting: Option<&'static str>) -> Bound {
    Bound { field, within, setting }
}

impl Bound {
    /// How a field is bound.
    pub(in crate::access) fn of(field: &str) -> &'static Self {
        let found = BOUNDS.iter().find(|bound| bound.field == field);
        found.expect("what is found to be beyond is listed here; a test reports each")
    }
}
