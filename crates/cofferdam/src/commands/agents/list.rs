//! `cofferdam agents list`.

use cofferdam_api::AgentState;
use serde_json::Value;

use super::Looked;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::{sanitize, terminal};

/// Lists agents.
pub(super) fn run(agents: &[Looked], json: bool) -> Result<ExitCode, Failure> {
    terminal::write_answer(
        json,
        || Value::Array(agents.iter().map(Looked::to_json).collect()),
        || table(agents.iter().map(|looked| &looked.state)),
    )?;
    Ok(ExitCode::Succeeded)
}

/// A line for each.
pub(super) fn table<'a>(agents: impl IntoIterator<Item = &'a AgentState>) -> String {
    let agents: Vec<&AgentState> = agents.into_iter().collect();
    let model =
        |state: &AgentState| sanitize::short_line(state.model.as_deref().unwrap_or("its default"), 30);
    let width = |of: &dyn Fn(&AgentState) -> usize, least| {
        agents.iter().map(|state| of(state)).chain([least]).max().unwrap_or(least)
    };
    let names = width(&|state| sanitize::line(&state.agent).chars().count(), 5);
    let models = width(&|state| model(state).chars().count(), 5);
    let row = |cells: [&str; 6]| {
        let [name, provider, mode, model, cli, access] = cells;
        format!("{name:<names$}  {provider:<11}  {mode:<6}  {model:<models$}  {cli:<8}  {access}\n")
    };
    let mut text = row(["AGENT", "PROVIDER", "MODE", "MODEL", "CLI", "KEY OR LOGIN"]);
    for state in &agents {
        let cli = match state.installed {
            Some(true) => "yes",
            Some(false) => "no",
            None => "in image",
        };
        let access = match state.has_key_or_login {
            true => sanitize::short_line(&state.key_or_login, 60),
            false => "none".to_owned(),
        };
        let [name, provider, mode] =
            [&state.agent, &state.provider, &state.mode].map(|cell| sanitize::line(cell));
        text.push_str(&row([&name, &provider, &mode, &model(state), cli, &access]));
    }
    text
}

#[cfg(test)]
mod tests {
    use cofferdam_core::{Effective, Origin, read_layer};

    use super::*;
    use crate::known_agents::known_agents;

    #[test]
    fn the_table_has_a_clean_line_for_each_agent() {
        let text = r#"{"agents": {"coder": {"provider": "codex", "sandbox_mode": "docker", "model": "a\u001b[2Jb"}}}"#;
        let settings = Effective::default().under(&read_layer(text, &Origin::Global("/g".into())).unwrap());
        let agents = known_agents(&settings).unwrap().into_iter().map(|known| {
            let question = known.question();
            AgentState {
                agent: question.name,
                provider: question.agent.to_string(),
                model: question.model,
                mode: question.mode.to_string(),
                installed: (!question.mode.is_container()).then_some(false),
                cli: None,
                has_key_or_login: false,
                key_or_login: "there is none".to_owned(),
            }
        });
        insta::assert_snapshot!(table(&agents.collect::<Vec<_>>()), @r"
        AGENT        PROVIDER     MODE    MODEL        CLI       KEY OR LOGIN
        coder        codex        docker  ab           in image  none
        claude_code  claude_code  native  its default  no        none
        codex        codex        native  its default  no        none
        opencode     opencode     native  its default  no        none
        ");
    }
}
