//! `cofferdam agents show`.

use super::Looked;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::{sanitize, terminal};

/// Shows one agent.
pub(super) fn run(looked: &Looked, json: bool) -> Result<ExitCode, Failure> {
    terminal::write_answer(json, || looked.to_json(), || text(looked))?;
    Ok(ExitCode::Succeeded)
}

fn text(looked: &Looked) -> String {
    let Looked { agent, cli, access } = looked;
    let set = agent.settings.as_ref();
    let said = |value: Option<String>, without: &str| value.unwrap_or_else(|| without.to_owned());
    let folder = set.and_then(|set| set.working_directory.as_ref()).map(|path| path.display().to_string());
    let found = |found: &Result<String, String>| match found {
        Ok(text) => text.clone(),
        Err(why) => format!("none: {why}"),
    };
    let rows = [
        ("agent", agent.name.clone()),
        ("name", said(set.and_then(|set| set.name.clone()), "-")),
        ("provider", agent.agent.as_str().to_owned()),
        ("model", said(agent.model().map(str::to_owned), "the CLI's own default")),
        ("mode", format!("{} ({})", agent.mode, agent.mode_origin)),
        ("working directory", said(folder, "-")),
        ("system prompt", said(set.and_then(|set| set.system_prompt.clone()), "-")),
        ("CLI", cli.as_ref().map_or_else(|| "that of the image".to_owned(), found)),
        ("key or login", found(access)),
    ];
    rows.map(|(name, value)| format!("{name:<18} {}\n", sanitize::line(&value))).concat()
}
