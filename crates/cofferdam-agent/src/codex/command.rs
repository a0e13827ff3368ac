//! How Codex is started.

use std::collections::BTreeMap;

use cofferdam_core::{Login, PromptSetup, gateway};

use super::{login, permissions};
use crate::adapter::{Command, Context, HomeFile, ModelRoute, Stdin};

/// How often the CLI repeats a failed request to the model. Its own defaults add up to thirty tries.
const MAX_RETRIES: u32 = 3;

pub(super) fn command(setup: &PromptSetup, context: &Context<'_>) -> Command {
    let mut argv = context.program(super::PROFILE.program);
    argv.push("app-server".to_owned());
    // Plugins, apps and analytics call hosts that a sealed sandbox does not reach; looking those up takes the
    // CLI five seconds. Without the last one it would wait for a network for ever.
    for feature in ["plugins", "apps", "unbounded_connection_retries"] {
        argv.extend(["--disable".to_owned(), feature.to_owned()]);
    }
    let mut settings: Vec<String> = [
        "analytics.enabled=false",
        "check_for_update_on_startup=false",
        // The vendor would search on the agent's behalf, which the broker refuses: with it every request.
        "web_search=\"disabled\"",
    ]
    .map(str::to_owned)
    .into();
    settings.extend(permissions::settings(setup.permission_mode, context.working_directory));
    let mut env = BTreeMap::new();
    let mut files: Vec<HomeFile> = permissions::rules(setup.permission_mode).into_iter().collect();
    if let Some(route) = context.model_route {
        settings.push("model_provider=\"cofferdam\"".to_owned());
        settings.push(provider(&route));
        match login::file(&route) {
            Some(file) => files.push(file),
            None => drop(env.insert("OPENAI_API_KEY".to_owned(), route.placeholder.to_owned())),
        }
    }
    for setting in settings {
        argv.extend(["-c".to_owned(), setting]);
    }
    let links = context.keep("CODEX_HOME", ".codex", "sessions");
    Command { argv, env, files, stdin: Stdin::Lines, links }
}

/// A provider of our own: the built-in one would try WebSockets first, for six seconds.
fn provider(route: &ModelRoute<'_>) -> String {
    let url = format!("{}{}/v1", route.gateway_url, gateway::OPENAI);
    let key = match route.login {
        Login::Key | Login::ClaudeAi { .. } => "env_key=\"OPENAI_API_KEY\"",
        Login::ChatGpt { .. } => "requires_openai_auth=true",
    };
    format!(
        "model_providers.cofferdam={{name=\"cofferdam\",base_url={url:?},{key},\
         wire_api=\"responses\",request_max_retries={MAX_RETRIES},stream_max_retries={MAX_RETRIES}}}"
    )
}
