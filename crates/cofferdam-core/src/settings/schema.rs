//! The JSON schema of the settings. Keys, descriptions and defaults are those of the types; what a single value looks
//! like is written down here.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::{
    Agent, AgentName, AllowEntry, AllowedHost, AllowedMode, AllowedRoot, ApprovalsBy, ArtifactEndpoint,
    ArtifactRegion, ArtifactUrl, BranchPattern, ContainerNetwork, Count, Cpus, EngineAddress, FilePattern,
    ForwardName, ForwardPort, GitHost, GitPath, ModelAlias, ModelName, OciRuntime, PolicyName, PublicUrl,
    RepoPattern, RetentionDays, RetentionSize, RuntimeCommand, Settings, Size, Storage, StorePooler,
    StoreUrl, TokenVariable, VariableName, WebOrigin, WebSearch,
};
use crate::access::Visibility;
use crate::egress::{AllowRule, HostPort};
use crate::image::ImageReference;
use crate::loopback::RewriteLoopback;
use crate::policy::{Mode, Network, PathMappingMode};

/// The schema of `settings.json`.
#[must_use]
pub fn schema() -> Value {
    // Without references, so that each key is described where it stands.
    let generator = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = generator.into_generator().into_root_schema_for::<Settings>().to_value();
    without_null(&mut schema);
    schema
}

/// The schema of an object's member, if there is such a key.
pub(super) fn member<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    schema["properties"].get(key).or_else(|| any_member(schema))
}

/// The schema of the members of an object whose keys are names that people give.
pub(super) fn any_member(schema: &Value) -> Option<&Value> {
    let by_pattern = schema["patternProperties"].as_object().and_then(|patterns| patterns.values().next());
    by_pattern.or(Some(&schema["additionalProperties"])).filter(|schema| schema.is_object())
}

/// A key that is not set is left out; `null` is a mistake. So what is optional to Rust is no other type in JSON.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            for list in ["type", "enum"] {
                if let Some(Value::Array(members)) = object.get_mut(list) {
                    members.retain(|member| member != "null" && !member.is_null());
                    if let [only] = members.as_slice()
                        && list == "type"
                    {
                        object[list] = only.clone();
                    }
                }
            }
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
            if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
                choices.retain(|choice| choice["type"] != "null");
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    object.remove("anyOf");
                    only.into_iter().for_each(|(key, value)| {
                        object.entry(key).or_insert(value);
                    });
                }
            }
            // What a number is in memory says nothing about what to type.
            object.remove("format");
            object.values_mut().for_each(without_null);
        }
        Value::Array(members) => members.iter_mut().for_each(without_null),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// How single values are written. They are described in place: a reader looks for the key, not for our type.
macro_rules! values {
    ($($value:ty => $schema:tt),* $(,)?) => { $(
        impl JsonSchema for $value {
            fn schema_name() -> Cow<'static, str> {
                stringify!($value).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )* };
}

values! {
    Mode => { "enum": ["native", "docker", "apple", "host"] },
    Network => { "enum": ["sealed", "none", "open"] },
    PathMappingMode => { "enum": ["mapped", "same-path"] },
    Storage => { "enum": ["disk", "memory"] },
    ApprovalsBy => { "enum": ["owner", "system"] },
    WebSearch => { "type": "string", "pattern": "^(vendor|off|https?://.+)$" },
    Agent => { "enum": Agent::names() },
    AgentName => { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" },
    ForwardName => { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" },
    ForwardPort => { "type": ["integer", "string"], "minimum": 1024, "maximum": 65535, "pattern": "^[0-9]{4,5}$" },
    HostPort => { "type": "string", "pattern": "^.+:[0-9]{1,5}$" },
    ModelAlias => { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" },
    ModelName => { "type": "string", "pattern": "^[^-]", "maxLength": 200 },
    PolicyName => { "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" },
    VariableName => { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" },
    TokenVariable => { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*_[A-Za-z]+$" },
    GitHost => { "type": "string", "pattern": "^[^/@*\\s]+$" },
    GitPath => { "type": "string", "pattern": "^[^%?#\\s]+$" },
    FilePattern => { "type": "string", "minLength": 1 },
    AllowRule => { "type": "string", "pattern": "^.+:[0-9]{1,5}$" },
    AllowEntry => { "type": "string", "pattern": "^(.+:[0-9]{1,5}|[A-Za-z0-9][A-Za-z0-9_-]{0,63})$" },
    ImageReference => { "type": "string", "pattern": "^[a-z0-9\\[]\\S{0,511}$" },
    ContainerNetwork => {
        "type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]*$", "not": { "enum": ["host", "none"] }
    },
    StoreUrl => { "type": "string", "pattern": "^postgres(ql)?://\\S*$" },
    StorePooler => { "enum": ["none", "transaction"] },
    ArtifactUrl => { "type": "string", "pattern": "^s3://[a-z0-9.-]{3,63}(/\\S*)?$" },
    ArtifactEndpoint => { "type": "string", "pattern": "^https?://[^/@]+/?$" },
    ArtifactRegion => { "type": "string", "pattern": "^[a-z0-9-]{1,64}$" },
    EngineAddress => { "type": "string", "pattern": "^(unix:///|tcp://[^/])" },
    AllowedMode => { "enum": [
        "native", "native:open", "docker", "docker:open", "apple", "apple:open", "host:open",
    ] },
    AllowedRoot => { "type": "string", "pattern": "^/" },
    RepoPattern => { "type": "string", "pattern": "^(https|ssh|git|file)://|^[^/]+:" },
    BranchPattern => { "type": "string", "pattern": "^[^-/+\\s][^\\s~^:?\\[\\]{}\\\\+]*$" },
    Visibility => { "enum": ["all", "own"] },
    AllowedHost => { "type": "string", "pattern": "^[^/@*]+$" },
    WebOrigin => { "type": "string", "pattern": "^https?://[^/@*]+$" },
    PublicUrl => { "type": "string", "pattern": "^https?://[^@*?#]+$" },
    OciRuntime => { "type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9._-]*$" },
    RuntimeCommand => { "type": "string", "pattern": "^(/\\S*[^/\\s]|[A-Za-z0-9_][A-Za-z0-9._-]*)$" },
    Cpus => { "type": ["string", "number"], "pattern": "^[0-9]*\\.?[0-9]+$", "minimum": 0.01, "maximum": 1024 },
    RetentionDays => {
        "anyOf": [
            { "type": ["integer", "string"], "pattern": "^[0-9]+$", "minimum": 0, "maximum": 36_525 },
            { "const": "forever" },
        ]
    },
    RetentionSize => {
        "anyOf": [
            {
                "type": ["string", "integer"],
                "pattern": "^[0-9]*\\.?[0-9]+([bB]|[kKmMgGtT]([iI]?[bB])?)?$",
                "minimum": 1_048_576,
            },
            { "const": "unlimited" },
        ]
    },
    RewriteLoopback => {
        "anyOf": [
            { "const": "all" },
            { "type": "array", "items": { "type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$" } },
        ]
    },
}

impl<const LEAST: u64> JsonSchema for Size<LEAST> {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["string", "integer"],
            "pattern": "^[0-9]*\\.?[0-9]+([bB]|[kKmMgGtT]([iI]?[bB])?)?$",
            "minimum": LEAST,
        })
    }
}

impl<const LEAST: u32, const MOST: u32> JsonSchema for Count<LEAST, MOST> {
    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "pattern": "^[0-9]+$", "minimum": LEAST, "maximum": MOST })
    }
}
