//! Reads each field that overrides the settings on its own.

use std::fmt::Display;
use std::str::FromStr;

use super::bounds::{Bound, LONGEST_PATTERN, bound_of};
use super::forward::ForwardEntry;
use super::{InputError, InputSyntax, RunInput};
use crate::egress::{Budget, VendorTool};
use crate::image::ImageReference;
use crate::policy::{Mode, Network};
use crate::publish::BranchName;
use crate::quantity::{LEAST_DISK_BYTES, LEAST_MEMORY_BYTES, parse_bytes, parse_cpus_milli};
use crate::settings::{AllowEntry, FilePattern, Role};
use crate::value::ValueError;

/// What an input sets over the settings. What is left out is as they say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RunOverrides {
    /// How the caller writes what it asks for.
    pub(super) syntax: InputSyntax,
    /// Whether a role has to be one that the settings describe.
    pub(super) role_needs_settings: bool,
    /// The agent: one of the settings, or a CLI by any of its names.
    pub(super) agent: Option<String>,
    /// The kind of work.
    pub(super) role: Option<Role>,
    /// A policy of the settings.
    pub(super) policy: Option<String>,
    /// Which sandbox is made.
    pub(super) mode: Option<Mode>,
    /// What the run can reach.
    pub(super) network: Option<Network>,
    /// The container's image.
    pub(super) image: Option<ImageReference>,
    /// What a sealed run may connect to: `HOST:PORT`, or names of sets.
    pub(super) allow: Vec<AllowEntry>,
    /// Services on the sandbox's loopback.
    pub(super) forwards: Vec<ForwardEntry>,
    /// The branch that the agent may push.
    pub(super) push: Option<BranchName>,
    /// Whether a program may use the model, as agents do.
    pub(super) model_access: bool,
    /// The tools that the model's vendor may run on the agent's behalf, each once and in their order.
    pub(super) vendor_tools: Vec<VendorTool>,
    /// What it may spend at the model.
    pub(super) budget: Budget,
    /// Longest time of one attempt.
    pub(super) timeout_ms: Option<u64>,
    /// Memory of all its processes.
    pub(super) memory_bytes: Option<u64>,
    /// Processors, in thousandths.
    pub(super) cpus_milli: Option<u32>,
    /// Processes and threads.
    pub(super) pids: Option<u32>,
    /// What it may write to disk.
    pub(super) disk_bytes: Option<u64>,
    /// How often it is tried.
    pub(super) max_attempts: Option<u32>,
    /// Files that are shown although they look like secrets.
    pub(super) unmask: Vec<FilePattern>,
}

impl RunOverrides {
    /// Reads them.
    pub(super) fn of(
        input: &RunInput,
        syntax: InputSyntax,
        role_needs_settings: bool,
    ) -> Result<Self, InputError> {
        let options = &input.options;
        let sized = |field, text: &Option<String>, least| {
            let parsed = text.as_deref().map(|text| parse_bytes(text, least)).transpose();
            parsed.map_err(|error| InputError::of_value(field, error))
        };
        for (field, count) in [
            ("options.allow", options.allow.len()),
            ("options.forward", options.forward.len()),
            ("options.vendor_tools", options.vendor_tools.len()),
            ("options.env", options.env.len()),
            ("options.mounts", options.mounts.len()),
            ("options.unmask", options.unmask.len()),
        ] {
            check_items(field, count)?;
        }
        Ok(Self {
            syntax,
            role_needs_settings,
            agent: options.agent.clone(),
            role: input.role.as_deref().map(|text| role(text, syntax)).transpose()?,
            policy: options.policy.clone(),
            mode: shown("options.mode", options.mode.as_deref(), &syntax.with("options.mode", "native"))?,
            network: shown(
                "options.network",
                options.network.as_deref(),
                &syntax.with("options.network", "sealed"),
            )?,
            image: shown(
                "options.image",
                options.image.as_deref(),
                &syntax.with("options.image", "cofferdam/worker:latest"),
            )?,
            allow: each("options.allow", &options.allow)?,
            forwards: each("options.forward", &options.forward)?,
            push: text_of("options.push", options.push.as_deref())?,
            model_access: options.model_access.unwrap_or_default(),
            vendor_tools: vendor_tools(&options.vendor_tools)?,
            budget: budget(input, syntax)?,
            timeout_ms: number("options.timeout_ms", options.timeout_ms, syntax)?,
            memory_bytes: sized("options.memory", &options.memory, LEAST_MEMORY_BYTES)?,
            cpus_milli: options
                .cpus
                .as_deref()
                .map(parse_cpus_milli)
                .transpose()
                .map_err(|error| InputError::of_value("options.cpus", error))?,
            pids: number("options.pids", options.pids, syntax)?,
            disk_bytes: sized("options.disk", &options.disk, LEAST_DISK_BYTES)?,
            max_attempts: number("options.max_attempts", options.max_attempts, syntax)?,
            unmask: options.unmask.iter().map(|text| pattern(text)).collect::<Result<_, _>>()?,
        })
    }
}

/// Refuses a list that is too long.
pub(super) fn check_items(field: &'static str, count: usize) -> Result<(), InputError> {
    match bound_of(field) {
        Some(Bound::Items(most)) if count > most => Err(InputError::invalid(
            field,
            format!("must not have more than {most} entries"),
            "leave some of them out",
        )),
        _ => Ok(()),
    }
}

/// Refuses a number that is out of range.
pub(super) fn number<N: Copy + TryInto<i64>>(
    field: &'static str,
    value: Option<N>,
    syntax: InputSyntax,
) -> Result<Option<N>, InputError> {
    let (Some(number), Some(Bound::Number { least, most })) = (value, bound_of(field)) else {
        return Ok(value);
    };
    #[expect(clippy::cast_precision_loss, reason = "bounds are far below what a float holds exactly")]
    let is_within = number.try_into().is_ok_and(|number| (least..=most).contains(&(number as f64)));
    match is_within {
        true => Ok(value),
        false => Err(out_of_range(field, least, most, syntax)),
    }
}

fn out_of_range(field: &'static str, least: f64, most: f64, syntax: InputSyntax) -> InputError {
    // Whoever types a flag types a duration, and no milliseconds.
    let range = match (field, syntax) {
        ("options.timeout_ms", InputSyntax::Flags) => "1s to 7d".to_owned(),
        _ => format!("{least} to {most}"),
    };
    InputError::invalid(field, format!("out of range ({range})"), "use a value in that range")
}

/// Reads a value that says what is wrong with it.
fn of_field<T: FromStr<Err = ValueError>>(field: &'static str, text: &str) -> Result<T, InputError> {
    text.parse().map_err(|error| InputError::of_value(field, error))
}

/// The same, if it is there.
pub(super) fn text_of<T: FromStr<Err = ValueError>>(
    field: &'static str,
    text: Option<&str>,
) -> Result<Option<T>, InputError> {
    text.map(|text| of_field(field, text)).transpose()
}

fn each<T: FromStr<Err = ValueError>>(field: &'static str, texts: &[String]) -> Result<Vec<T>, InputError> {
    texts.iter().map(|text| of_field(field, text)).collect()
}

fn vendor_tools(names: &[String]) -> Result<Vec<VendorTool>, InputError> {
    let mut tools = each("options.vendor_tools", names)?;
    tools.sort_unstable();
    tools.dedup();
    Ok(tools)
}

/// Reads a value whose error has no hint of its own.
fn shown<T: FromStr>(field: &'static str, text: Option<&str>, example: &str) -> Result<Option<T>, InputError>
where
    T::Err: Display,
{
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error: T::Err| InputError::invalid(field, error.to_string(), format!("use {example}")))
}

fn role(text: &str, syntax: InputSyntax) -> Result<Role, InputError> {
    text.parse().map_err(|error: ValueError| {
        let known = Role::ALL.map(|role| syntax.with("role", role.as_str()));
        InputError::invalid("role", error.problem, format!("use {}, {} or {}", known[0], known[1], known[2]))
    })
}

/// A pattern is a plain one: `*`, `**` and `?`, no classes and no alternatives, so that OpenAPI can describe which are
/// valid. Whoever wants two patterns writes two.
fn pattern(text: &str) -> Result<FilePattern, InputError> {
    let is_plain = |c: char| !c.is_control() && !"[]{}\\".contains(c);
    match text.chars().count() <= LONGEST_PATTERN && text.chars().all(is_plain) {
        true => of_field("options.unmask", text),
        false => Err(InputError::invalid(
            "options.unmask",
            format!(
                "`{}` is not a pattern (at most {LONGEST_PATTERN} characters, without `[]{{}}\\`)",
                crate::egress::printable(text)
            ),
            "use a name with `*` and `?` in it, such as `.env*`",
        )),
    }
}

fn budget(input: &RunInput, syntax: InputSyntax) -> Result<Budget, InputError> {
    let options = &input.options;
    Ok(Budget {
        max_cost_micro_usd: options.max_cost_usd.map(|dollars| micro_usd(dollars, syntax)).transpose()?,
        max_tokens: number("options.max_tokens", options.max_tokens, syntax)?,
        max_model_calls: number("options.max_model_calls", options.max_model_calls, syntax)?,
    })
}

pub(super) fn micro_usd(dollars: f64, syntax: InputSyntax) -> Result<u64, InputError> {
    const FIELD: &str = "options.max_cost_usd";
    let micro = (dollars * 1e6).round();
    let Some(Bound::Number { least, most }) = bound_of(FIELD) else { unreachable!("it is in the table") };
    match (least * 1e6..=most * 1e6).contains(&micro) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within these bounds it is exact"
        )]
        true => Ok(micro as u64),
        false => Err(out_of_range(FIELD, least, most, syntax)),
    }
}
