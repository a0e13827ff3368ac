//! Which of the caller's variables are passed on: `--env` and `sandbox.env_allowlist`.

use std::ffi::OsStr;

use cofferdam_core::{Choice, Network, SandboxSettings, passed_on};

use super::args::RunArgs;
use crate::caller::Caller;
use crate::failure::UsageError;

/// The names that the settings list and that are set here, and those of the flags, which have to be.
pub(crate) fn names_from(
    args: &RunArgs,
    caller: &Caller,
    choice: &Choice<'_>,
    sandbox: &SandboxSettings,
    network: Network,
    notices: &mut Vec<String>,
) -> Result<Vec<String>, UsageError> {
    let is_set = |name: &&str| caller.env.contains_key(OsStr::new(name));
    let (listed, mut kept_out) = passed_on(choice, sandbox, network);
    kept_out.retain(is_set);
    let mut names: Vec<String> = Vec::new();
    for name in listed {
        match caller.env.get(OsStr::new(name)).map(|value| value.to_str()) {
            Some(None) => notices.push(format!("{name} is not passed on: its value is not valid UTF-8")),
            Some(Some(_)) if !names.iter().any(|known| known == name) => names.push(name.to_owned()),
            Some(Some(_)) | None => {}
        }
    }
    if !kept_out.is_empty() {
        let kept_out = kept_out.join(", ");
        notices.push(format!("not passed on by env_allowlist: {kept_out} (the broker adds keys outside)"));
    }
    for name in &args.env {
        let name = env_name(name, caller)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// A command line is public (`ps`, shell history), so values are never taken from it.
pub(crate) fn env_name(name: &OsStr, caller: &Caller) -> Result<String, UsageError> {
    let shown = name.to_string_lossy();
    if let Some((name, _)) = shown.split_once('=') {
        return Err(UsageError::new(
            format!("--env takes the name of a variable, not a value (in `{name}=…`)"),
            format!("type `export {name}=…` first, then `--env {name}`, which keeps the value out of `ps`"),
        ));
    }
    let well_formed = !shown.is_empty()
        && !shown.starts_with(|c: char| c.is_ascii_digit())
        && shown.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !well_formed {
        return Err(UsageError::new(
            format!("--env `{shown}` is not the name of a variable"),
            "type a name of letters, digits and underscores, such as `--env LANG`",
        ));
    }
    match caller.env.get(name) {
        Some(value) if value.to_str().is_some() => Ok(shown.into_owned()),
        Some(_) => Err(UsageError::new(
            format!("the value of {shown} is not valid UTF-8"),
            format!("export {shown} with a value that is, or leave --env {shown} out"),
        )),
        None => Err(UsageError::new(
            format!("--env {shown}: no such variable is set here"),
            format!("type `export {shown}=…` first"),
        )),
    }
}
