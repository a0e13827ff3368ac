//! `cofferdam agents list`.

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
        || table(agents),
    )?;
    Ok(ExitCode::Succeeded)
}

fn table(agents: &[Looked]) -> String {
    let model = |looked: &Looked| sanitize::short_line(looked.agent.model().unwrap_or("its default"), 30);
    let width =
        |of: &dyn Fn(&Looked) -> usize, least| agents.iter().map(of).chain([least]).max().unwrap_or(least);
    let names = width(&|looked| looked.agent.name.chars().count(), 5);
    let models = width(&|looked| model(looked).chars().count(), 5);
    let row = |cells: [&str; 6]| {
        let [name, provider, mode, model, cli, access] = cells;
        format!("{name:<names$}  {provider:<11}  {mode:<6}  {model:<models$}  {cli:<8}  {access}\n")
    };
    let mut text = row(["AGENT", "PROVIDER", "MODE", "MODEL", "CLI", "KEY OR LOGIN"]);
    for looked in agents {
        let agent = &looked.agent;
        let cli = match &looked.cli {
            Some(Ok(_)) => "yes",
            Some(Err(_)) => "no",
            None => "in image",
        };
        let access = looked
            .access
            .as_ref()
            .map_or_else(|_| "none".to_owned(), |found| sanitize::short_line(found, 60));
        let mode = agent.mode.to_string();
        text.push_str(&row([&agent.name, agent.agent.as_str(), &mode, &model(looked), cli, &access]));
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
        let agents = known_agents(&settings).unwrap().into_iter().map(|agent| Looked {
            cli: (!agent.mode.is_container()).then(|| Err("not there".to_owned())),
            agent,
            access: Err("none".to_owned()),
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
