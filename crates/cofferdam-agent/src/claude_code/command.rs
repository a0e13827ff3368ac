//! How Claude Code is started.

use std::collections::BTreeMap;

use cofferdam_core::{PromptSetup, gateway};

use super::{login, permissions};
use crate::adapter::{Command, Context, Stdin};

/// How often the CLI repeats a failed request to the model. Its own default is ten times, three minutes.
const MAX_RETRIES: &str = "3";

pub(super) fn command(setup: &PromptSetup, context: &Context<'_>) -> Command {
    let mut argv = context.program(super::PROFILE.program);
    let flags = [
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--replay-user-messages",
        "--verbose",
    ];
    argv.extend(flags.map(str::to_owned));
    argv.extend(permissions::flags(setup, context.working_directory));
    // As one argument each: a value that begins with a dash stays a value.
    argv.extend(setup.model.as_ref().map(|model| format!("--model={model}")));
    argv.extend(setup.replaced_system_prompt.as_ref().map(|text| format!("--system-prompt={text}")));
    argv.extend(setup.system_prompt.as_ref().map(|text| format!("--append-system-prompt={text}")));
    argv.extend(setup.max_turns.map(|turns| format!("--max-turns={turns}")));
    let files = context.model_route.as_ref().map(login::files).unwrap_or_default();
    argv.extend(context.resume().map(|session| format!("--resume={session}")));
    let links = context.keep("CLAUDE_CONFIG_DIR", ".claude", "projects");
    Command { argv, env: env(setup, context), files, stdin: Stdin::Lines, links }
}

fn env(setup: &PromptSetup, context: &Context<'_>) -> BTreeMap<String, String> {
    let mut env = BTreeMap::from(
        [
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("CLAUDE_CODE_MAX_RETRIES", MAX_RETRIES),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    if permissions::are_limited(setup) {
        env.insert("CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD".to_owned(), "1".to_owned());
    }
    if let Some(route) = context.model_route {
        let url = format!("{}{}", route.gateway_url, gateway::ANTHROPIC);
        env.insert("ANTHROPIC_BASE_URL".to_owned(), url);
        // A key beside a login would be taken instead of it.
        if !login::is_of_claude_ai(route.login) {
            env.insert("ANTHROPIC_API_KEY".to_owned(), route.placeholder.to_owned());
        }
    }
    // Without it the CLI refuses to run as root with its own permission checks off. A sandboxed agent never
    // is root; on the host that is what its caller asked for.
    if context.is_root {
        env.insert("IS_SANDBOX".to_owned(), "1".to_owned());
    }
    env
}
