//! What a caller may choose. The operator's lists say what anybody with the scope `run` may; beyond them a key needs
//! `system`.

use std::path::{Path, PathBuf};

use cofferdam_api::{CreateRunRequest, ErrorCode, MountRequest};
use cofferdam_core::{AllowRule, Choice, LimitsRule, Mount, MountAccess, Policy, Wishes, policy_of};
use serde_json::json;

use crate::access::Caller;
use crate::app::App;
use crate::errors::ApiError;

/// A refusal that names what is not allowed, and what would allow it.
pub(crate) fn refuse(field: &str, problem: &str, hint: &str) -> ApiError {
    ApiError::new(ErrorCode::NotAllowed, format!("{field}: {problem}"))
        .with(json!({ "field": field, "hint": hint, "scope": "system" }))
}

const NEEDS_SYSTEM: &str = "leave it out, or use a key with the scope `system`";

/// Refuses what is beyond the operator's lists.
pub(super) fn check(
    app: &App,
    caller: &Caller,
    body: &CreateRunRequest,
    wishes: &Wishes,
    choice: &Choice<'_>,
    policy: &Policy,
    is_agent: bool,
) -> Result<(), ApiError> {
    if caller.may_exceed() {
        return Ok(());
    }
    let service = &app.settings().settings.service;
    if !service.allows_mode(policy.mode, policy.network) {
        return Err(refuse(
            "options.mode",
            &format!("mode `{}` with network `{}` is not allowed to this key", policy.mode, policy.network),
            "choose another one, add it to service.allowed_modes, or use a key with the scope `system`",
        ));
    }
    let options = &body.options;
    let chosen = [
        (!options.env.is_empty(), "options.env"),
        (!options.mounts.is_empty(), "options.mounts"),
        (!options.unmask.is_empty(), "options.unmask"),
        (!options.forward.is_empty(), "options.forward"),
        (options.image.is_some(), "options.image"),
        (wishes.vendor_tools, "options.vendor_tools"),
    ];
    if let Some((_, field)) = chosen.into_iter().find(|(given, _)| *given) {
        return Err(refuse(field, "it is not allowed to this key", NEEDS_SYSTEM));
    }
    // A rule of the caller's own could name any host of the operator's network; the sets are the operator's.
    if let Some(rule) = options.allow.iter().find(|text| text.parse::<AllowRule>().is_ok()) {
        return Err(refuse(
            "options.allow",
            &format!("`{rule}` is not the name of a set"),
            "name a set such as `npm`, or use a key with the scope `system`",
        ));
    }
    check_limits(app, wishes, choice, policy, is_agent)
}

/// A caller may take less than the settings give, and not more.
fn check_limits(
    app: &App,
    wishes: &Wishes,
    choice: &Choice<'_>,
    policy: &Policy,
    is_agent: bool,
) -> Result<(), ApiError> {
    let without =
        Wishes { memory_bytes: None, cpus_milli: None, pids: None, disk_bytes: None, ..wishes.clone() };
    let set = policy_of(&without, choice, &app.settings().settings, is_agent, LimitsRule::Required);
    let Ok(set) = set.map(|policy| policy.limits) else { return Ok(()) };
    let asked = &policy.limits;
    let beyond = [
        (asked.memory_bytes > set.memory_bytes, "options.memory"),
        (asked.cpus_milli > set.cpus_milli, "options.cpus"),
        (asked.pids > set.pids, "options.pids"),
        (asked.workspace_bytes > set.workspace_bytes, "options.disk"),
    ];
    match beyond.into_iter().find(|(is_beyond, _)| *is_beyond) {
        Some((_, field)) => Err(refuse(field, "it is more than the settings give", NEEDS_SYSTEM)),
        None => Ok(()),
    }
}

/// Paths that are to be visible inside, as they really are.
pub(super) async fn mounts(
    app: &App,
    caller: &Caller,
    asked: &[MountRequest],
) -> Result<Vec<Mount>, ApiError> {
    const FIELD: &str = "options.mounts";
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    // Refused before anything is looked at: whether a path exists is nobody's business.
    if !caller.may_exceed() {
        return Err(refuse(FIELD, "paths of the node are not allowed to this key", NEEDS_SYSTEM));
    }
    let mut mounts = Vec::new();
    for MountRequest { path, writable } in asked {
        let hint = "name an absolute path of a folder that is needed, and nothing around it";
        if !path.starts_with('/') || path.contains('\0') {
            return Err(ApiError::invalid_field(FIELD, "a path is absolute", hint));
        }
        let found = tokio::fs::canonicalize(path).await;
        let found = found.map_err(|_| not_there(FIELD, "there is no such path"))?;
        let (state, home) = (app.options().state_folder.as_deref(), app.options().home.as_deref());
        if let Some(why) = Mount::refusal(&found, state, home) {
            return Err(refuse(FIELD, why, hint));
        }
        let access = if *writable { MountAccess::Rw } else { MountAccess::Ro };
        mounts.push(Mount { path: found, access });
    }
    Ok(mounts)
}

/// A path that is not there, for a caller who may know that.
pub(super) fn not_there(field: &str, problem: &str) -> ApiError {
    ApiError::new(ErrorCode::PathNotFound, format!("{field}: {problem}")).with(json!({ "field": field }))
}

/// Whether a path is one that this caller may name. Links were followed.
pub(crate) fn path(app: &App, caller: &Caller, canonical: &Path) -> bool {
    let roots = &app.settings().settings.service.allowed_roots;
    let holds = |root: &PathBuf| canonical.starts_with(root);
    // A root that is a link itself is where it leads to.
    caller.may_exceed()
        || roots.iter().any(|root| root.holds(canonical))
        || roots.iter().filter_map(|root| root.path().canonicalize().ok()).any(|root| holds(&root))
}
