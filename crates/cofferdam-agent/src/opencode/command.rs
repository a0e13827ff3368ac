//! How OpenCode is started.

use std::collections::BTreeMap;

use cofferdam_core::{PromptSetup, Vendor, gateway};
use serde_json::{Value, json};

use super::{WITHOUT_CALLS_HOME, models, permissions};
use crate::adapter::{Command, Context, ModelRoute, Stdin};

pub(super) fn command(setup: &PromptSetup, context: &Context<'_>) -> Command {
    let mut argv = context.program(super::PROFILE.program);
    argv.push("acp".to_owned());
    let mut config = config(setup, context.model_route.as_ref());
    permissions::write(setup, context.working_directory, &mut config);
    let config = config.to_string();
    let env = [("OPENCODE_CONFIG_CONTENT", config.as_str())].into_iter().chain(WITHOUT_CALLS_HOME);
    let mut env: BTreeMap<String, String> =
        env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if permissions::are_limited(setup) {
        // The repository's own settings could allow what this mode does not, or name programs to be run.
        for name in ["OPENCODE_DISABLE_PROJECT_CONFIG", "OPENCODE_PURE"] {
            env.insert(name.to_owned(), "1".to_owned());
        }
    }
    // Of all that the CLI keeps, the conversation alone: its login is beside it.
    if let Some(session) = context.session {
        env.insert("OPENCODE_DB".to_owned(), format!("{}/opencode.db", session.folder));
    }
    Command { argv, env, files: Vec::new(), stdin: Stdin::Lines, links: Vec::new() }
}

fn config(setup: &PromptSetup, route: Option<&ModelRoute<'_>>) -> Value {
    let mut config = json!({
        "share": "disabled",
        "autoupdate": false,
        // A title for the session would be a call to the model that nobody asked for.
        "agent": { "title": { "disable": true }, "summary": { "disable": true } },
    });
    if let Some(prompt) = &setup.replaced_system_prompt {
        config["agent"]["build"]["prompt"] = json!(prompt);
        config["agent"]["plan"]["prompt"] = json!(prompt);
    }
    let Some((vendor, route)) = route.and_then(|route| Some((route.vendor?, route))) else {
        if let Some(model) = &setup.model {
            config["model"] = json!(model);
        }
        return config;
    };
    let path = match vendor {
        Vendor::Anthropic => gateway::ANTHROPIC,
        Vendor::Openai => gateway::OPENAI,
    };
    let (provider, model) = models::named(vendor, setup.model.as_deref());
    let base_url = format!("{}{path}/v1", route.gateway_url);
    config["model"] = json!(format!("{provider}/{model}"));
    config["small_model"] = config["model"].clone();
    config["enabled_providers"] = json!([provider]);
    config["provider"] = json!({ provider: {
        "options": { "baseURL": base_url, "apiKey": route.placeholder },
        // So that a model which is newer than the CLI can be used.
        "models": { model: {} },
    } });
    config
}
