//! What a caller may choose. The operator's lists say what anybody with the scope `run` may; beyond them a key needs
//! `system`.

use std::path::{Path, PathBuf};

use cofferdam_api::{CreateRunRequest, ErrorCode};
use cofferdam_core::{AllowRule, Host, RepoUrl, Source, Validated, is_public};
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
    validated: &Validated,
) -> Result<(), ApiError> {
    if caller.may_exceed() {
        return Ok(());
    }
    // Whoever registered a project was allowed to, so that whoever runs on it is.
    if body.project_id.is_none() {
        check_source(app, caller, &validated.request.source)?;
    }
    let (service, policy) = (&app.settings().settings.service, &validated.request.policy);
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
        (options.vendor_tools.unwrap_or_default(), "options.vendor_tools"),
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
    check_limits(validated)
}

/// A caller may take less than the settings give, and not more.
fn check_limits(validated: &Validated) -> Result<(), ApiError> {
    let (set, asked) = (&validated.settings_limits, &validated.request.policy.limits);
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

/// Refuses an address that this caller may not have fetched. A path was judged before it was looked at.
pub(super) fn check_source(app: &App, caller: &Caller, source: &Source) -> Result<(), ApiError> {
    match source {
        Source::Git { url, .. } if url.host().is_some() && !caller.may_exceed() => check_address(app, url),
        Source::Git { .. } | Source::Local { .. } | Source::Empty => Ok(()),
    }
}

/// The operator's list, or without one whatever is not on this machine or in its own network: a caller could otherwise
/// make the node fetch what only the node can reach.
fn check_address(app: &App, url: &RepoUrl) -> Result<(), ApiError> {
    let is_allowed = match &app.settings().settings.service.allowed_repos {
        Some(patterns) => patterns.iter().any(|pattern| pattern.matches(url)),
        None => match url.host() {
            Some(Host::Address(address)) => is_public(address),
            Some(Host::Name(name)) => name != "localhost" && !name.ends_with(".localhost"),
            None => false,
        },
    };
    match is_allowed {
        true => Ok(()),
        false => Err(refuse(
            "repo",
            "this address is not allowed to this key",
            "add it to service.allowed_repos, or use a key with the scope `system`",
        )),
    }
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
