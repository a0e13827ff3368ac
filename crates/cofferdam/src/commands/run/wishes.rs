//! From flags to what the caller wishes: each value is read on its own, and told what to type if it cannot be.

use cofferdam_core::{
    Budget, FilePattern, ImageReferenceError, LEAST_DISK_BYTES, LEAST_MEMORY_BYTES, MOST_PIDS, Spoken,
    ValueError, Wishes,
};

use super::args::RunArgs;
use super::mount;
use crate::caller::Caller;
use crate::failure::UsageError;
use crate::units;

/// Reads the flags.
pub(crate) fn wishes_from(args: &RunArgs, caller: &Caller) -> Result<Wishes, UsageError> {
    let text = |flag: &Option<String>| flag.clone();
    Ok(Wishes {
        spoken: Spoken::Flags,
        agent: text(&args.agent),
        role: text(&args.role),
        policy: text(&args.policy),
        mode: parsed(args.mode.as_deref(), "type `--mode native`")?,
        network: parsed(args.network.as_deref(), "type `--network sealed`")?,
        image: args.image.as_deref().map(image).transpose()?,
        allow: args.allow.clone(),
        forwards: args.forward.iter().map(|text| of_flag("--forward", text)).collect::<Result<_, _>>()?,
        push: args.push.as_deref().map(|text| of_flag("--push", text)).transpose()?,
        model_access: args.model_access,
        vendor_tools: args.vendor_tools,
        budget: budget(args)?,
        timeout_ms: args.timeout.as_deref().map(timeout_ms).transpose()?,
        memory_bytes: args
            .memory
            .as_deref()
            .map(|text| units::bytes("--memory", text, LEAST_MEMORY_BYTES))
            .transpose()?,
        cpus_milli: args.cpus.as_deref().map(|text| units::cpus_milli("--cpus", text)).transpose()?,
        pids: args.pids.as_deref().map(|text| units::count("--pids", text, 1, MOST_PIDS)).transpose()?,
        disk_bytes: args
            .disk
            .as_deref()
            .map(|text| units::bytes("--disk", text, LEAST_DISK_BYTES))
            .transpose()?,
        max_attempts: args.max_attempts.as_deref().map(max_attempts).transpose()?,
        mounts: args.mount.iter().map(|text| mount::parse(text, caller)).collect::<Result<_, _>>()?,
        unmask: args.unmask.iter().map(|text| pattern(text)).collect::<Result<_, _>>()?,
    })
}

/// The value of `--max-attempts`.
pub(crate) fn max_attempts(text: &str) -> Result<u32, UsageError> {
    units::count("--max-attempts", text, 1, 100)
}

fn parsed<T>(text: Option<&str>, hint: &str) -> Result<Option<T>, UsageError>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|error: T::Err| UsageError::new(error.to_string(), hint))
}

fn of_flag<T: std::str::FromStr<Err = ValueError>>(flag: &str, text: &str) -> Result<T, UsageError> {
    text.parse().map_err(|error: ValueError| UsageError::new(format!("{flag} {}", error.problem), error.hint))
}

fn image(text: &str) -> Result<cofferdam_core::ImageReference, UsageError> {
    text.parse().map_err(|error: ImageReferenceError| {
        UsageError::new(
            format!("--image: {error}"),
            "type an image such as `--image cofferdam/worker:latest`",
        )
    })
}

fn timeout_ms(text: &str) -> Result<u64, UsageError> {
    let timeout = units::duration("--timeout", text)?;
    Ok(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
}

fn pattern(text: &str) -> Result<FilePattern, UsageError> {
    text.parse().map_err(|error: ValueError| {
        UsageError::new(format!("--unmask {}", error.problem), "type a pattern such as `--unmask '.env*'`")
    })
}

fn budget(args: &RunArgs) -> Result<Budget, UsageError> {
    let count = |flag: &'static str, text: &Option<String>| {
        text.as_deref().map(|text| units::count(flag, text, 1, u32::MAX).map(u64::from)).transpose()
    };
    Ok(Budget {
        max_cost_micro_usd: args.max_cost_usd.as_deref().map(micro_usd).transpose()?,
        max_tokens: count("--max-tokens", &args.max_tokens)?,
        max_model_calls: count("--max-model-calls", &args.max_model_calls)?,
    })
}

fn micro_usd(text: &str) -> Result<u64, UsageError> {
    let refuse = || {
        UsageError::new(
            format!("--max-cost-usd `{text}` is not an amount"),
            "type dollars, such as `--max-cost-usd 2.50`",
        )
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && part.is_empty()) || !digits(whole) || !digits(part) || part.len() > 6 {
        return Err(refuse());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| refuse())? };
    let part: u64 = format!("{part:0<6}").parse().map_err(|_| refuse())?;
    let amount = whole.checked_mul(1_000_000).and_then(|whole| whole.checked_add(part));
    amount.filter(|&amount| amount > 0).ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_exactly() {
        assert_eq!(micro_usd("2.50"), Ok(2_500_000));
        assert_eq!(micro_usd(".000001"), Ok(1));
        assert_eq!(micro_usd("3"), Ok(3_000_000));
        for bad in ["", ".", "0", "0.0000001", "-1", "1e3", "1,5", "$2", "99999999999999999999"] {
            assert!(micro_usd(bad).is_err(), "{bad}");
        }
    }
}
