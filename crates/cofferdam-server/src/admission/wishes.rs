//! Reads what a request wishes: each field on its own.

use std::str::FromStr;

use cofferdam_api::CreateRunRequest;
use cofferdam_core::{
    AllowEntry, Budget, FilePattern, LEAST_DISK_BYTES, LEAST_MEMORY_BYTES, MOST_PIDS, Priority, Role, Spoken,
    ValueError, Wishes, parse_bytes, parse_cpus_milli,
};

use crate::errors::ApiError;

/// What a request wishes. Mounts are looked up elsewhere.
pub(super) fn of(body: &CreateRunRequest) -> Result<Wishes, ApiError> {
    let options = &body.options;
    let text = |field: &Option<String>| field.clone();
    let sized = |field: &str, text: &Option<String>, least| {
        let parsed = text.as_deref().map(|text| parse_bytes(text, least)).transpose();
        parsed.map_err(|error| ApiError::invalid(field, &error))
    };
    let between = |field: &str, number: Option<u32>, most: u32| match number {
        Some(number) if number == 0 || number > most => Err(ApiError::invalid_field(
            field,
            "it is out of its bounds",
            &format!("write a number from 1 to {most}"),
        )),
        number => Ok(number),
    };
    Ok(Wishes {
        spoken: Spoken::Fields,
        agent: text(&options.agent),
        role: text(&body.role),
        policy: text(&options.policy),
        mode: shown("options.mode", options.mode.as_deref())?,
        network: shown("options.network", options.network.as_deref())?,
        image: shown("options.image", options.image.as_deref())?,
        allow: options
            .allow
            .iter()
            .map(|text| of_field::<AllowEntry>("options.allow", text).map(|_| text.clone()))
            .collect::<Result<_, _>>()?,
        forwards: options
            .forward
            .iter()
            .map(|text| of_field("options.forward", text))
            .collect::<Result<_, _>>()?,
        push: text_of("options.push", options.push.as_deref())?,
        model_access: options.model_access.unwrap_or_default(),
        vendor_tools: options.vendor_tools.unwrap_or_default(),
        budget: budget(body)?,
        timeout_ms: timeout_ms(options.timeout_ms)?,
        memory_bytes: sized("options.memory", &options.memory, LEAST_MEMORY_BYTES)?,
        cpus_milli: options
            .cpus
            .as_deref()
            .map(parse_cpus_milli)
            .transpose()
            .map_err(|error| ApiError::invalid("options.cpus", &error))?,
        pids: between("options.pids", options.pids, MOST_PIDS)?,
        disk_bytes: sized("options.disk", &options.disk, LEAST_DISK_BYTES)?,
        max_attempts: between("options.max_attempts", options.max_attempts, 100)?,
        mounts: Vec::new(),
        unmask: options.unmask.iter().map(|text| pattern(text)).collect::<Result<_, _>>()?,
    })
}

/// Over the wire a pattern is a plain one: no classes and no alternatives.
fn pattern(text: &str) -> Result<FilePattern, ApiError> {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_.*?/ -".contains(&b);
    match !text.is_empty() && text.len() <= 200 && text.bytes().all(is_plain) {
        true => of_field("options.unmask", text),
        false => Err(ApiError::invalid_field(
            "options.unmask",
            "it is not a plain pattern",
            "write letters, digits, `*` and `?`, such as `.env*`",
        )),
    }
}

/// Reads a value that says what is wrong with it.
pub(super) fn of_field<T: FromStr<Err = ValueError>>(field: &str, text: &str) -> Result<T, ApiError> {
    text.parse().map_err(|error| ApiError::invalid(field, &error))
}

/// The same, if it is there.
pub(super) fn text_of<T: FromStr<Err = ValueError>>(
    field: &str,
    text: Option<&str>,
) -> Result<Option<T>, ApiError> {
    text.map(|text| of_field(field, text)).transpose()
}

/// Reads a value whose error has its hint in it.
fn shown<T: FromStr>(field: &str, text: Option<&str>) -> Result<Option<T>, ApiError>
where
    T::Err: std::fmt::Display,
{
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error: T::Err| {
        ApiError::new(cofferdam_api::ErrorCode::InvalidRequest, format!("{field}: {error}"))
            .with(serde_json::json!({ "field": field }))
    })
}

/// The kind of work.
pub(super) fn role_of(body: &CreateRunRequest) -> Result<Role, ApiError> {
    let parsed = body.role.as_deref().map(|text| {
        let known = Role::ALL.into_iter().find(|role| role.as_str() == text);
        known.ok_or_else(|| {
            let hint = "write `worker`, `tester` or `docser`";
            ApiError::invalid_field("role", "there is no such kind of work", hint)
        })
    });
    Ok(parsed.transpose()?.unwrap_or_default())
}

/// Where it stands among those that wait.
pub(super) fn priority_of(body: &CreateRunRequest) -> Result<Priority, ApiError> {
    let parsed = body.priority.map(Priority::try_from).transpose();
    Ok(parsed.map_err(|error| ApiError::invalid("priority", &error))?.unwrap_or_default())
}

/// A second at least: what is shorter ends before a sandbox is made.
fn timeout_ms(asked: Option<u64>) -> Result<Option<u64>, ApiError> {
    match asked {
        Some(asked) if !(1_000..=604_800_000).contains(&asked) => Err(ApiError::invalid_field(
            "options.timeout_ms",
            "it is out of its bounds",
            "write milliseconds from 1000 to 604800000",
        )),
        asked => Ok(asked),
    }
}

fn budget(body: &CreateRunRequest) -> Result<Budget, ApiError> {
    let options = &body.options;
    let counted = |field: &str, number: Option<u64>| match number {
        Some(number) if number == 0 || number > u64::from(u32::MAX) => Err(ApiError::invalid_field(
            field,
            "it is out of its bounds",
            "write a number from 1 to 4294967295",
        )),
        number => Ok(number),
    };
    Ok(Budget {
        max_cost_micro_usd: options.max_cost_usd.map(micro_usd).transpose()?,
        max_tokens: counted("options.max_tokens", options.max_tokens)?,
        max_model_calls: counted("options.max_model_calls", options.max_model_calls)?,
    })
}

fn micro_usd(dollars: f64) -> Result<u64, ApiError> {
    let micro = (dollars * 1e6).round();
    match (1.0..=1e12).contains(&micro) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "within these bounds it is exact"
        )]
        true => Ok(micro as u64),
        false => Err(ApiError::invalid_field(
            "options.max_cost_usd",
            "it is out of its bounds",
            "write dollars from 0.000001 to 1000000",
        )),
    }
}
