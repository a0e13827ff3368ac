//! Durations, sizes and processors as people type them, and as they are shown.

use std::time::Duration;

use crate::failure::UsageError;

const DURATION_HINT: &str = "type seconds or a duration such as `90s`, `10m` or `1h30m`";
const SIZE_HINT: &str = "type a size such as `512m`, `2g` or `2GiB`";
const CPUS_HINT: &str = "type a number of processors such as `0.5` or `2`";

/// The longest timeout: a year. What is longer is a mistake, and would overflow the kernel's timers.
const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 3600);

/// Reads `90`, `90s`, `10m`, `1h30m`, `1.5h`, `500ms`, `2d`.
pub(crate) fn duration(flag: &str, text: &str) -> Result<Duration, UsageError> {
    let refuse = || UsageError::new(format!("{flag} `{text}` is not a duration"), DURATION_HINT);
    let total = if text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        seconds(text, 1.0).ok_or_else(refuse)?
    } else {
        parts(text).ok_or_else(refuse)?.try_fold(0.0, |sum, part| Some(sum + part?)).ok_or_else(refuse)?
    };
    let total = Duration::try_from_secs_f64(total).map_err(|_| refuse())?;
    if total < Duration::from_millis(1) {
        return Err(UsageError::new(format!("{flag} must be longer than nothing"), DURATION_HINT));
    }
    if total > MAX_DURATION {
        return Err(UsageError::new(format!("{flag} `{text}` is longer than a year"), DURATION_HINT));
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

/// Reads `512m`, `2g`, `2GiB`, `1.5g` and plain bytes. The units are powers of 1024, also without the `i`,
/// as with `docker --memory`.
pub(crate) fn bytes(flag: &str, text: &str, least: u64) -> Result<u64, UsageError> {
    let refuse = || UsageError::new(format!("{flag} `{text}` is not a size"), SIZE_HINT);
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(refuse()),
    };
    let value = seconds(number, f64::from(2_u32).powi(shift)).ok_or_else(refuse)?;
    // Beyond 2^53 a float skips whole numbers; no machine has that much of anything.
    if !(0.0..=9e15).contains(&value) {
        return Err(refuse());
    }
    let value = value as u64;
    if value < least {
        return Err(UsageError::new(format!("{flag} must be at least {}", show_bytes(least)), SIZE_HINT));
    }
    Ok(value)
}

/// Reads `0.5` or `2` as thousandths of a processor.
pub(crate) fn cpus_milli(flag: &str, text: &str) -> Result<u32, UsageError> {
    let refuse = || UsageError::new(format!("{flag} `{text}` is not a number of processors"), CPUS_HINT);
    if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(refuse());
    }
    let value = seconds(text, 1000.0).ok_or_else(refuse)?;
    // The kernel grants no less than a hundredth of a processor.
    if !(10.0..=1_024_000.0).contains(&value) {
        return Err(UsageError::new(format!("{flag} must be between 0.01 and 1024"), CPUS_HINT));
    }
    Ok(value.round() as u32)
}

/// Reads a whole number between two bounds.
pub(crate) fn count(flag: &str, text: &str, least: u32, most: u32) -> Result<u32, UsageError> {
    match text.parse::<u32>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(UsageError::new(
            format!("{flag} `{text}` is not a whole number between {least} and {most}"),
            format!("type a number, such as `{flag} {}`", least.max(2)),
        )),
    }
}

/// A size for people: `2 GiB`, `1.5 GiB`, `300 bytes`.
pub(crate) fn show_bytes(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes.is_multiple_of(unit) => format!("{} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
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
    fn sizes_read_as_people_type_them() {
        for (text, value) in [
            ("512m", 512 << 20),
            ("2g", 2 << 30),
            ("2GiB", 2 << 30),
            ("2GB", 2 << 30),
            ("1.5g", 3 << 29),
            ("1048576", 1 << 20),
            ("64k", 64 << 10),
        ] {
            assert_eq!(bytes("--memory", text, 1).unwrap(), value, "{text}");
        }
        for text in ["", "0", "-1g", "g", "2x", "2 g", "1e3", "99999999t", "inf"] {
            assert!(bytes("--memory", text, 1).is_err(), "{text}");
        }
        let low = bytes("--memory", "1m", 16 << 20).unwrap_err();
        assert_eq!(low.to_string(), "--memory must be at least 16 MiB");
    }

    #[test]
    fn processors_read_as_people_type_them() {
        assert_eq!(cpus_milli("--cpus", "0.5").unwrap(), 500);
        assert_eq!(cpus_milli("--cpus", "2").unwrap(), 2000);
        for text in ["", "0", "0.001", "-1", "1e3", "all", "5000", "."] {
            assert!(cpus_milli("--cpus", text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_shown_is_short() {
        assert_eq!(show_bytes(2 << 30), "2 GiB");
        assert_eq!(show_bytes(1_600_000_000), "1.5 GiB");
        assert_eq!(show_bytes(300), "300 bytes");
        for (ms, text) in
            [(340, "340 ms"), (4_210, "4.2 s"), (59_999, "59 s"), (187_000, "3m 07s"), (7_500_000, "2h 05m")]
        {
            assert_eq!(show_duration(Duration::from_millis(ms)), text);
        }
    }
}
