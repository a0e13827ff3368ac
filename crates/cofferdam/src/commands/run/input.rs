//! From flags to the input of a run. Numbers and durations are read from text here; everything else is checked by the
//! core, for the run of this machine as for that of a service, which gets this very input.

use std::ffi::{OsStr, OsString};

use cofferdam_core::{MountInput, RunInput, RunOptions, bounds};

use super::args::RunArgs;
use super::mount;
use super::prompt::{prompt_text, tools};
use crate::caller::Caller;
use crate::failure::UsageError;
use crate::units;

/// Reads the flags. The repository was found before: an address, or the path of its root.
pub(crate) fn input_from(
    args: &RunArgs,
    caller: &Caller,
    repo: Option<String>,
) -> Result<RunInput, UsageError> {
    let command = texts("CMD", &args.command)?;
    Ok(RunInput {
        task: args.prompt.as_deref().map(prompt_text).transpose()?,
        command: (!command.is_empty()).then_some(command),
        repo,
        reference: args.reference.clone(),
        branch: args.commit_branch.clone(),
        commit_message: args.commit_message.clone(),
        project_id: None,
        role: args.role.clone(),
        priority: None,
        lane: None,
        dry_run: args.dry_run.then_some(true),
        options: options(args, caller)?,
    })
}

fn options(args: &RunArgs, caller: &Caller) -> Result<RunOptions, UsageError> {
    let all_tools = |lists: &[String]| lists.iter().flat_map(|list| tools(list)).collect();
    Ok(RunOptions {
        include_diff: None,
        permission_mode: args.permission_mode.clone(),
        system_prompt: args.replace_system_prompt.clone(),
        append_system_prompt: args.system_prompt.clone(),
        model: args.model.clone(),
        agent: args.agent.clone(),
        mode: args.mode.clone(),
        policy: args.policy.clone(),
        network: args.network.clone(),
        allow: args.allow.clone(),
        forward: args.forward.clone(),
        push: args.push.clone(),
        model_access: args.model_access.then_some(true),
        vendor_tools: args
            .vendor_tools
            .iter()
            .flat_map(|names| names.split(','))
            .map(str::to_owned)
            .collect(),
        image: args.image.clone(),
        timeout_ms: timeout_ms(args.timeout.as_deref())?,
        max_turns: small("--max-turns", args.max_turns.as_deref())?,
        working_dir: args.working_dir.clone(),
        read_only: args.read_only.then_some(true),
        allowed_tools: all_tools(&args.allowed_tools),
        disallowed_tools: all_tools(&args.disallowed_tools),
        max_attempts: small("--max-attempts", args.max_attempts.as_deref())?,
        max_cost_usd: args.max_cost_usd.as_deref().map(dollars).transpose()?,
        max_tokens: whole("--max-tokens", args.max_tokens.as_deref())?,
        max_model_calls: whole("--max-model-calls", args.max_model_calls.as_deref())?,
        memory: args.memory.clone(),
        cpus: args.cpus.clone(),
        pids: small("--pids", args.pids.as_deref())?,
        disk: args.disk.clone(),
        env: args.env.iter().map(|name| env_name(name)).collect::<Result<_, _>>()?,
        mounts: args.mount.iter().map(|text| mount_of(text, caller)).collect::<Result<_, _>>()?,
        unmask: args.unmask.clone(),
        cancel_on_disconnect: None,
    })
}

/// The value of `--timeout`, in milliseconds.
pub(crate) fn timeout_ms(text: Option<&str>) -> Result<Option<u64>, UsageError> {
    let timeout = text.map(|text| units::duration("--timeout", text)).transpose()?;
    Ok(timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)))
}

/// The value of `--max-attempts` where there is no input to put it into.
pub(crate) fn max_attempts(text: &str) -> Result<u32, UsageError> {
    units::count("--max-attempts", text, 1, bounds::MOST_ATTEMPTS)
}

/// A whole number. Whether it is in its range is the core's to say, and what no number holds is in none.
fn whole(flag: &str, text: Option<&str>) -> Result<Option<u64>, UsageError> {
    let Some(text) = text else { return Ok(None) };
    match !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        true => Ok(Some(text.parse().unwrap_or(u64::MAX))),
        false => Err(UsageError::new(
            format!("{flag}: `{text}` is not a whole number"),
            format!("type a number, such as `{flag} 2`"),
        )),
    }
}

/// The same for a number that is never large.
pub(crate) fn small(flag: &str, text: Option<&str>) -> Result<Option<u32>, UsageError> {
    Ok(whole(flag, text)?.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
}

/// An amount in US dollars, to the millionth: neither `1e3` nor `inf`, which Rust's own parser would take.
pub(crate) fn dollars(text: &str) -> Result<f64, UsageError> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let is_plain = !(whole.is_empty() && part.is_empty()) && digits(whole) && digits(part) && part.len() <= 6;
    text.parse().ok().filter(|_| is_plain).ok_or_else(|| {
        UsageError::new(
            format!("--max-cost-usd: `{text}` is not an amount"),
            "type dollars, such as `--max-cost-usd 2.50`",
        )
    })
}

fn mount_of(text: &OsStr, caller: &Caller) -> Result<MountInput, UsageError> {
    let (path, writable) = mount::split(text);
    Ok(MountInput { path: self::text("--mount", caller.resolve(path.as_ref()).as_os_str())?, writable })
}

/// What follows a `=` may be a secret, which does not belong into a message.
fn env_name(name: &OsStr) -> Result<String, UsageError> {
    let shown = name.to_string_lossy();
    let shown = shown.split('=').next().unwrap_or_default();
    name.to_str().map(str::to_owned).ok_or_else(|| {
        UsageError::new(
            format!("--env: `{shown}` is not the name of a variable"),
            "type a name of letters, digits and underscores, such as `--env LANG`",
        )
    })
}

fn texts(flag: &str, words: &[OsString]) -> Result<Vec<String>, UsageError> {
    words.iter().map(|word| text(flag, word)).collect()
}

fn text(flag: &str, word: &OsStr) -> Result<String, UsageError> {
    word.to_str().map(str::to_owned).ok_or_else(|| {
        UsageError::new(
            format!("{flag}: `{}` is not valid UTF-8", word.to_string_lossy()),
            "type something that is",
        )
    })
}

#[cfg(test)]
#[path = "input_properties.rs"]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_to_the_millionth() {
        for (text, amount) in [("2.50", 2.5), (".000001", 0.000_001), ("3", 3.0), ("3.", 3.0)] {
            assert_eq!(dollars(text), Ok(amount));
        }
        for bad in ["", ".", "0.0000001", "-1", "1e3", "1,5", "$2", "inf", "nan"] {
            assert!(dollars(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_number_that_no_type_holds_is_out_of_every_range() {
        assert_eq!(whole("--max-tokens", Some("99999999999999999999")), Ok(Some(u64::MAX)));
        assert_eq!(small("--pids", Some("99999999999")), Ok(Some(u32::MAX)));
        for bad in ["", "-1", "+1", "1.5", "many"] {
            assert!(whole("--pids", Some(bad)).is_err(), "{bad}");
        }
    }
}
