//! `cofferdam agents show`.

use cofferdam_api::AgentState;

use super::Looked;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::{sanitize, terminal};

/// What is told of an agent: names with their values.
type Rows = Vec<(&'static str, String)>;

/// Shows one agent.
pub(super) fn run(looked: &Looked, json: bool) -> Result<ExitCode, Failure> {
    terminal::write_answer(json, || looked.to_json(), || rows(&of_settings(looked)))?;
    Ok(ExitCode::Succeeded)
}

/// The same for people, a line for each.
pub(super) fn rows(rows: &Rows) -> String {
    rows.iter().map(|(name, value)| format!("{name:<18} {}\n", sanitize::line(value))).collect()
}

/// What a machine has for an agent.
pub(super) fn of_state(state: &AgentState) -> Rows {
    let cli = match (state.installed, &state.cli) {
        (Some(false), Some(why)) => format!("none: {why}"),
        (_, Some(found)) => found.clone(),
        (_, None) => "that of the image".to_owned(),
    };
    let access = match state.has_key_or_login {
        true => state.key_or_login.clone(),
        false => format!("none: {}", state.key_or_login),
    };
    vec![
        ("agent", state.agent.clone()),
        ("provider", state.provider.clone()),
        ("model", state.model.clone().unwrap_or_else(|| "the CLI's own default".to_owned())),
        ("mode", state.mode.clone()),
        ("CLI", cli),
        ("key or login", access),
    ]
}

/// The same with what this machine's settings say besides.
fn of_settings(Looked { known, state }: &Looked) -> Rows {
    let set = known.settings.as_ref();
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let folder = set.and_then(|set| set.working_directory.as_ref()).map(|path| path.display().to_string());
    let mut rows = of_state(state);
    rows.extend([
        ("mode set by", known.mode_origin.clone()),
        ("name", or_none(set.and_then(|set| set.name.clone()))),
        ("working directory", or_none(folder)),
        ("system prompt", or_none(set.and_then(|set| set.system_prompt.clone()))),
    ]);
    rows
}
