//! The same request again, as a new run.

use cofferdam_core::{
    AllowRule, EgressSettings, PRESETS, PolicySettings, RunId, RunRequest, Source, WorkspaceKind, allow_rules,
};
use serde_json::json;

use crate::access::Caller;
use crate::admission::{may_name_path, not_allowed};
use crate::app::{App, new_run_id, now_ms};
use crate::errors::ApiError;

/// Accepts a request of before as a new run.
pub(super) async fn again(
    app: &App,
    caller: &Caller,
    before: RunRequest,
    replay_of: Option<RunId>,
    action: &str,
) -> Result<RunId, ApiError> {
    check(app, caller, &before)?;
    let of = before.id.clone();
    let request = RunRequest { id: new_run_id(), replay_of, claimable_by: None, ..before };
    app.audit(caller, action, request.id.as_str(), json!({ "of": of })).await?;
    let enqueued = app.store().enqueue(&request, None, now_ms()).await?;
    app.store().wake();
    Ok(enqueued.run)
}

/// A request that somebody else was allowed to make is not allowed to everybody for that.
fn check(app: &App, caller: &Caller, request: &RunRequest) -> Result<(), ApiError> {
    if caller.may_exceed() {
        return Ok(());
    }
    let settings = &app.settings().settings;
    let policy = &request.policy;
    let listed = |name: &String| {
        let policies = settings.sandbox.policies.values().filter_map(|policy| policy.env_allowlist.as_ref());
        policies.chain([&settings.sandbox.env_allowlist]).flatten().any(|listed| listed.as_str() == name)
    };
    let is_named = match &request.source {
        Source::Local { path } => may_name_path(app, caller, path),
        Source::Git { url, .. } => url.host().is_some(),
        Source::Empty => true,
    };
    let known = known_rules(&settings.egress, settings.sandbox.policies.values());
    let is_within = settings.service.allows_mode(policy.mode, policy.network)
        && policy.mounts.is_empty()
        && policy.egress.forwards.is_empty()
        && !policy.egress.vendor_tools
        && policy.egress.allow.iter().all(|rule| known.contains(rule))
        && policy.env.iter().all(listed)
        && is_named
        && request.conversation.is_none()
        && request.workspace == WorkspaceKind::Overlay;
    match is_within {
        true => Ok(()),
        false => Err(not_allowed(
            "id",
            "this run was made with more than this key may ask for",
            "use a key with the scope `system`",
        )),
    }
}

/// Every rule that a name of the settings stands for.
fn known_rules<'a>(
    egress: &EgressSettings,
    policies: impl Iterator<Item = &'a PolicySettings>,
) -> Vec<AllowRule> {
    let of_policies = policies.filter_map(|policy| policy.allow.as_ref()).flatten();
    let names = of_policies.map(|entry| entry.as_str().to_owned());
    let names =
        names.chain(egress.sets.keys().cloned()).chain(PRESETS.iter().map(|(name, _)| (*name).to_owned()));
    names.filter_map(|name| allow_rules(&name, egress).ok()).flatten().collect()
}
