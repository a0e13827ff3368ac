//! Which variables are passed on.

use super::{Choice, InputError, InputSyntax, Surroundings, Variable};
use crate::policy::Network;
use crate::settings::{SandboxSettings, VariableName};

/// Variables that open models. The broker adds what is in them outside, where there is one.
pub const MODEL_KEYS: [&str; 8] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "OPENROUTER_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
];

/// Names of variables.
#[derive(Debug, Default)]
pub(super) struct PassedOn {
    /// Those that are passed on.
    pub(super) names: Vec<String>,
    /// Keys of models that `env_allowlist` lists, and that a closed network keeps out.
    pub(super) kept_out: Vec<String>,
    /// Those that `env_allowlist` lists, and whose value is not text.
    pub(super) not_text: Vec<String>,
}

/// The names that `env_allowlist` lists, as far as they are set, and those of the input, which have to be.
pub(super) fn passed_on(
    asked: &[String],
    choice: &Choice<'_>,
    sandbox: &SandboxSettings,
    network: Network,
    syntax: InputSyntax,
    surroundings: &dyn Surroundings,
) -> Result<PassedOn, InputError> {
    let mut passed = PassedOn::default();
    for name in sandbox.env_under(choice.policy).iter().map(VariableName::as_str) {
        let is_kept_out = MODEL_KEYS.contains(&name) && network.is_closed();
        let list = match surroundings.variable(name) {
            Variable::Unset => continue,
            _ if is_kept_out => &mut passed.kept_out,
            Variable::NotText => &mut passed.not_text,
            Variable::Set | Variable::Unknown => &mut passed.names,
        };
        if !list.iter().any(|known| known == name) {
            list.push(name.to_owned());
        }
    }
    for name in asked {
        let name = checked(name, syntax, surroundings)?;
        if !passed.names.contains(&name) {
            passed.names.push(name);
        }
    }
    Ok(passed)
}

/// A command line is public (`ps`, shell history), and a request is kept, so values are taken from neither.
fn checked(text: &str, syntax: InputSyntax, surroundings: &dyn Surroundings) -> Result<String, InputError> {
    const FIELD: &str = "options.env";
    let own = |name: &str| match syntax {
        InputSyntax::Flags => format!(
            "type `export {name}=…` first, then {}, which keeps the value out of `ps`",
            syntax.with(FIELD, name)
        ),
        InputSyntax::Fields => format!("write the name alone: `{name}`"),
    };
    if let Some((name, _)) = text.split_once('=') {
        let name = crate::egress::printable(name);
        let problem = format!("takes the name of a variable, not a value (in `{name}=…`)");
        return Err(InputError::invalid(FIELD, problem, own(&name)));
    }
    let name: VariableName = text.parse().map_err(|error| InputError::of_value(FIELD, error))?;
    match surroundings.variable(name.as_str()) {
        Variable::Set | Variable::Unknown => Ok(name.as_str().to_owned()),
        Variable::NotText => Err(InputError::invalid(
            FIELD,
            format!("the value of {name} is not valid UTF-8"),
            format!("export {name} with a value that is, or leave it out"),
        )),
        Variable::Unset => Err(InputError::invalid(
            FIELD,
            format!("no variable {name} is set here"),
            format!("type `export {name}=…` first"),
        )),
    }
}
