//! Durations and counts as people type them, and as they are shown.

use std::time::Duration;

use cofferdam_core::parse_count;

use crate::failure::UsageError;

const DURATION_HINT: &str = "type seconds or a duration such as `90s`, `10m` or `1h30m`";

/// The longest duration: a year. What is longer is a mistake, and would overflow the kernel's timers.
const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 3600);

/// Reads `90`, `90s`, `10m`, `1h30m`, `1.5h`, `500ms`, `2d`.
pub(crate) fn duration(flag: &str, text: &str) -> Result<Duration, UsageError> {
    let refuse = || UsageError::new(format!("{flag}: `{text}` is not a duration"), DURATION_HINT);
    let total = if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        seconds(text, 1.0).ok_or_else(refuse)?
    } else {
        parts(text).ok_or_else(refuse)?.try_fold(0.0, |sum, part| Some(sum + part?)).ok_or_else(refuse)?
    };
    let total = Duration::try_from_secs_f64(total).map_err(|_| refuse())?;
    if total < Duration::from_millis(1) {
        return Err(UsageError::new(format!("{flag}: must be greater than zero"), DURATION_HINT));
    }
    if total > MAX_DURATION {
        return Err(UsageError::new(format!("{flag}: out of range (up to a year)"), DURATION_HINT));
    }
    Ok(total)
}

fn seconds(number: &str, unit: f64) -> Option<f64> {
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some(number * unit)
}

/// The seconds of each `number unit` pair; `None` for a text that is not made of such pairs.
fn parts(text: &str) -> Option<impl Iterator<Item = Option<f64>>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(unit_at);
        let unit_len = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, after) = tail.split_at(unit_len);
        let unit_seconds = match unit {
            "ms" => 0.001,
            "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        found.push(seconds(number, unit_seconds));
        rest = after;
    }
    Some(found.into_iter())
}

/// Reads a whole number between two bounds.
pub(crate) fn count(flag: &str, text: &str, least: u32, most: u32) -> Result<u32, UsageError> {
    let example = least.max(2);
    parse_count(text, least, most).map_err(|error| {
        UsageError::new(
            format!("{flag}: {}", error.problem),
            format!("type a number, such as `{flag} {example}`"),
        )
    })
}

/// A duration for people: `340 ms`, `4.2 s`, `3m 07s`, `2h 05m`, `3d 4h`.
pub(crate) fn show_duration(duration: Duration) -> String {
    let (ms, s) = (duration.as_millis(), duration.as_secs());
    match s {
        0 => format!("{ms} ms"),
        1..=9 => format!("{}.{} s", s, (ms % 1000) / 100),
        10..=59 => format!("{s} s"),
        60..=3599 => format!("{}m {:02}s", s / 60, s % 60),
        3600..=86_399 => format!("{}h {:02}m", s / 3600, s % 3600 / 60),
        _ => format!("{}d {}h", s / 86_400, s % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_type_them() {
        for (text, ms) in [
            ("90", 90_000),
            ("90s", 90_000),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("250ms", 250),
            ("2d", 172_800_000),
        ] {
            assert_eq!(duration("--timeout", text).unwrap().as_millis(), ms, "{text}");
        }
        for text in
            ["", "0", "0s", "-5", "5 m", "m", "10x", "1h30", "inf", "nan", "1e9d", "9999999d", ".", "1..2s"]
        {
            assert!(duration("--timeout", text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_error_names_the_flag_and_what_was_typed() {
        let error = count("--pids", "x", 1, 9).unwrap_err();
        assert_eq!(error.to_string(), "--pids: `x` is not a whole number between 1 and 9");
    }

    #[test]
    fn what_is_shown_is_short() {
        for (ms, text) in
            [(340, "340 ms"), (4_210, "4.2 s"), (59_999, "59 s"), (187_000, "3m 07s"), (7_500_000, "2h 05m")]
        {
            assert_eq!(show_duration(Duration::from_millis(ms)), text);
        }
    }
}
