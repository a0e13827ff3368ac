//! The OpenAPI document: what the handlers say of themselves, and what holds for all of them.

use std::sync::OnceLock;

use cofferdam_api::ErrorBody;
use cofferdam_core::bounds::{BOUNDS, Bound, LONGEST_MOUNT};
use serde_json::{Value, json};
use utoipa::OpenApi;

use crate::handlers::{
    allow_host, cancel_run, check_auth, config, create_key, create_project, create_run, docs, doctor,
    execute, execute_sdk, get_artifact, get_dead_letter, get_diff, get_logs, get_project, get_run, get_seal,
    health, list_agents, list_artifacts, list_audit, list_dead_letters, list_events, list_keys,
    list_messages, list_nodes, list_projects, list_runs, list_trust, look_at_agents, metrics, processes,
    read_settings, remove_dead_letter, remove_project, remove_run, replay_dead_letter, retry_run, revoke_key,
    sandbox_events, sandbox_messages, send_message, specs,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Cofferdam",
        description = "Runs coding agents on repositories, sealed off from everything else, and hands back what they did.",
        license(name = "Apache-2.0", identifier = "Apache-2.0")
    ),
    components(schemas(ErrorBody, cofferdam_api::RunEnd, cofferdam_api::SdkStart, cofferdam_api::SpecEnd)),
    paths(
        health::health,
        health::ready,
        metrics::metrics,
        docs::openapi_json,
        docs::docs,
        execute::execute,
        execute_sdk::execute_sdk,
        execute_sdk::get_answer,
        create_run::create_run,
        list_runs::list_runs,
        get_run::get_run,
        cancel_run::cancel_run,
        allow_host::allow_host,
        remove_run::remove_run,
        retry_run::retry_run,
        list_events::list_events,
        list_messages::list_messages,
        send_message::send_message,
        get_diff::get_diff,
        get_logs::get_logs,
        list_artifacts::list_artifacts,
        get_artifact::get_artifact,
        get_seal::get_seal,
        sandbox_events::sandbox_events,
        sandbox_messages::list_sandbox_messages,
        sandbox_messages::send_sandbox_message,
        create_project::create_project,
        list_projects::list_projects,
        get_project::get_project,
        remove_project::remove_project,
        specs::create_spec::create_spec,
        specs::list_specs::list_specs,
        specs::launch_spec::launch_spec,
        specs::get_spec::get_spec,
        specs::update_spec::update_spec,
        specs::archive_spec::archive_spec,
        specs::write_phase::write_phase,
        specs::execute_spec::execute_spec,
        specs::approve_spec::approve_spec,
        specs::reject_spec::reject_spec,
        specs::cancel_spec::cancel_spec,
        specs::get_phase_data::get_phase_data,
        specs::get_execution_status::get_execution_status,
        specs::list_versions::list_versions,
        specs::list_spec_runs::list_spec_runs,
        specs::list_spec_events::list_spec_events,
        specs::get_rows::get_requirements,
        specs::get_rows::get_design,
        specs::get_rows::get_tasks,
        specs::export_spec::export_spec,
        list_agents::list_agents,
        list_nodes::list_nodes,
        list_dead_letters::list_dead_letters,
        get_dead_letter::get_dead_letter,
        replay_dead_letter::replay_dead_letter,
        remove_dead_letter::remove_dead_letter,
        list_audit::list_audit,
        create_key::create_key,
        list_keys::list_keys,
        revoke_key::revoke_key,
        read_settings::read_settings,
        list_trust::list_trust,
        config::get_config,
        config::change_config,
        check_auth::claude,
        check_auth::codex,
        check_auth::opencode,
        look_at_agents::look_at_agents,
        doctor::doctor,
        processes::list_processes,
        processes::get_process,
        processes::start_process,
        processes::stop_process,
        processes::stop_all_processes,
        processes::process_log,
    )
)]
struct Described;

/// Errors of every call, and of those that need a key or have a body.
const OF_ALL: [(u16, &str); 5] = [
    (400, "The request cannot be read, or asks for something that cannot be."),
    (403, "The caller may not ask for this, or not from there."),
    (408, "It took too long."),
    (500, "A mistake of ours, or a run that had no chance."),
    (503, "Not now: come back after `Retry-After` seconds."),
];
const OF_KEYS: [(u16, &str); 1] = [(401, "There is no API key, or it opens nothing.")];
const OF_BODIES: [(u16, &str); 2] =
    [(413, "The body is longer than 1 MiB."), (415, "The body is not `application/json`.")];

/// The document.
#[must_use]
pub fn document() -> Value {
    let mut document = serde_json::to_value(Described::openapi()).expect("the document is plain JSON");
    document["components"]["securitySchemes"] = json!({
        "api_key": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
        "bearer": { "type": "http", "scheme": "bearer" },
    });
    narrow(&mut document["components"]["schemas"]);
    let paths = document["paths"].as_object_mut().expect("the document has paths");
    for methods in paths.values_mut().filter_map(Value::as_object_mut) {
        for (method, operation) in methods.iter_mut() {
            complete(method, operation);
        }
    }
    document
}

/// The document as text.
pub(crate) fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| document().to_string())
}

/// What a type cannot say of itself: which fields need each other, and which exclude each other.
fn narrow(schemas: &mut Value) {
    let agents = [
        "agent",
        "model",
        "system_prompt",
        "append_system_prompt",
        "max_turns",
        "permission_mode",
        "allowed_tools",
        "disallowed_tools",
    ];
    // To a program none of these means anything.
    let without: serde_json::Map<String, Value> =
        agents.iter().map(|name| ((*name).to_owned(), json!(false))).collect();
    let run = &mut schemas["CreateRunRequest"];
    run["oneOf"] = json!([
        { "required": ["task"], "properties": { "command": false } },
        { "required": ["command"], "properties": { "task": false, "options": { "properties": without } } },
    ]);
    run["properties"]["command"] = json!({
        "description": run["properties"]["command"]["description"],
        "type": "array",
        "minItems": 1,
        "prefixItems": [{ "type": "string", "minLength": 1, "pattern": "^[^\\u0000]+$" }],
        "items": { "type": "string", "pattern": "^[^\\u0000]*$" },
    });
    run["allOf"] = json!([
        { "not": { "required": ["project_id", "repo"] } },
        { "if": { "required": ["ref"] }, "then": { "anyOf": [{ "required": ["repo"] }, { "required": ["project_id"] }] } },
        { "if": { "required": ["branch"] }, "then": {
            "anyOf": [
                { "required": ["project_id"] },
                { "required": ["repo"], "properties": { "repo": { "pattern": "^(https://|[^/:]+/[^/:]+$)" } } },
            ]
        } },
        { "if": { "required": ["commit_message"] }, "then": { "required": ["branch"] } },
    ]);
    bound(schemas);
    let message = &mut schemas["SendMessageRequest"];
    message["additionalProperties"] = json!(false);
    message["properties"]["message_type"] = json!({
        "description": "In place of `kind`, the words of other services.",
        "type": "string",
        "pattern": "^(user_message|interrupt|guardian_nudge|system)$",
    });
    message["required"] = json!([]);
    message["oneOf"] = json!([
        { "required": ["kind"], "properties": { "message_type": false } },
        { "required": ["message_type"], "properties": { "kind": false } },
    ]);
    let is_interrupt =
        |field: &str| json!({ "required": [field], "properties": { field: { "const": "interrupt" } } });
    message["anyOf"] = json!([
        is_interrupt("kind"),
        is_interrupt("message_type"),
        { "required": ["content"], "properties": { "content": { "pattern": "[^\\s\\u0000]" } } },
    ]);
}

/// The bounds of the core, which are those of the check. A field that refers to a type of its own has the bounds there.
fn bound(schemas: &mut Value) {
    for (field, bound) in BOUNDS {
        for (request, options) in
            [("CreateRunRequest", "RunOptions"), ("ExecuteSdkRequest", "ExecuteSdkOptions")]
        {
            let (schema, name) = match field.strip_prefix("options.") {
                Some(own) => (options, own),
                None => (request, field),
            };
            if let Some(property) = schemas[schema]["properties"].get_mut(name) {
                narrow_field(property, bound);
            }
        }
    }
    schemas["MountRequest"]["properties"]["path"]["maxLength"] = json!(LONGEST_MOUNT);
}

fn narrow_field(property: &mut Value, bound: Bound) {
    if property.get("$ref").is_some() {
        return;
    }
    match bound {
        Bound::Number { least, most } => {
            property["minimum"] = number(least);
            property["maximum"] = number(most);
        }
        Bound::Items(most) => property["maxItems"] = json!(most),
        Bound::Characters(most) => property["maxLength"] = json!(most),
    }
}

/// A whole number is written as one.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "bounds are far below what a float holds exactly")]
    match value.fract() == 0.0 {
        true => json!(value as i64),
        false => json!(value),
    }
}

/// Adds what holds for every operation of its kind.
fn complete(method: &str, operation: &mut Value) {
    // One that says that it needs nothing has an empty requirement.
    let is_open = operation["security"] == json!([{}]);
    if is_open {
        operation["security"] = json!([]);
    } else {
        operation["security"] = json!([{ "api_key": [] }, { "bearer": [] }]);
    }
    // A parameter is there or it is not: what is optional to Rust is no other type on the wire.
    for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
        without_null(&mut parameter["schema"]);
    }
    let mut errors = OF_ALL.to_vec();
    if !is_open {
        errors.extend(OF_KEYS);
    }
    if matches!(method, "post" | "patch" | "put") {
        errors.extend(OF_BODIES);
    }
    let responses = operation["responses"].as_object_mut().expect("an operation has responses");
    for (status, description) in errors {
        responses.entry(status.to_string()).or_insert_with(|| {
            json!({
                "description": description,
                "content": { "application/json": { "schema": { "$ref": "#/components/schemas/ErrorBody" } } },
            })
        });
    }
    for response in responses.values_mut() {
        response["headers"]["X-Request-ID"] = json!({
            "description": "The name of the request: the caller's, or one of ours.",
            "schema": { "type": "string" },
        });
    }
}

fn without_null(schema: &mut Value) {
    if let Some(types) = schema["type"].as_array_mut() {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(choices) = schema.get("oneOf").and_then(Value::as_array)
        && let Some(only) = choices.iter().find(|choice| choice["type"] != "null")
    {
        *schema = only.clone();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_route_is_described_and_nothing_else_is() {
        let document = document();
        let described: BTreeSet<&str> =
            document["paths"].as_object().unwrap().keys().map(String::as_str).collect();
        let open = crate::router::open();
        let closed = crate::router::closed();
        let routed: BTreeSet<&str> = open.iter().chain(&closed).map(|(path, _)| *path).collect();
        assert_eq!(described, routed);
        for (path, _) in &open {
            let methods = document["paths"][*path].as_object().unwrap();
            assert!(methods.values().all(|operation| operation["security"] == json!([])), "{path}");
        }
        for (path, _) in &closed {
            let methods = document["paths"][*path].as_object().unwrap();
            assert!(methods.values().all(|operation| operation["security"] != json!([])), "{path}");
        }
    }

    #[test]
    fn the_document_of_the_repository_is_that_of_the_code() {
        let kept = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json"));
        let kept: Value = serde_json::from_str(kept).unwrap();
        assert_eq!(kept, document(), "type `./dev docs`");
    }
}
