//! Sizes, processors and counts as people type them, for flags and settings alike.

use crate::value::ValueError;

/// The least memory in which the worker itself can start.
pub const LEAST_MEMORY_BYTES: u64 = 16 << 20;
/// The least disk on which a workspace makes sense.
pub const LEAST_DISK_BYTES: u64 = 1 << 20;
/// The least output: a few lines.
pub const LEAST_OUTPUT_BYTES: u64 = 4 << 10;
/// The most processes that Linux can number.
pub const MOST_PIDS: u32 = 1 << 22;

const SIZE_HINT: &str = "type a size such as `512m`, `2g` or `2GiB`";
const CPUS_HINT: &str = "type a number of processors such as `0.5` or `2`";

/// Reads `512m`, `2g`, `2GiB`, `1.5g` and plain bytes. The units are powers of 1024, also without the `i`,
/// as with `docker --memory`.
///
/// # Errors
/// The text is no size, or less than the least.
pub fn parse_bytes(text: &str, least: u64) -> Result<u64, ValueError> {
    let refuse = || ValueError::new(text, "is not a size", SIZE_HINT);
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
    let value = decimal(number).ok_or_else(refuse)? * f64::from(2_u32).powi(shift);
    // Beyond 2^53 a float skips whole numbers; no machine has that much of anything.
    if !(0.0..=9e15).contains(&value) {
        return Err(refuse());
    }
    let value = value as u64;
    if value < least {
        return Err(ValueError::new(text, &format!("is less than {}", show_bytes(least)), SIZE_HINT));
    }
    Ok(value)
}

/// Reads `0.5` or `2` as thousandths of a processor.
///
/// # Errors
/// The text is no number of processors, or not one that the kernel can grant.
pub fn parse_cpus_milli(text: &str) -> Result<u32, ValueError> {
    let refuse = || ValueError::new(text, "is not a number of processors", CPUS_HINT);
    let value = decimal(text).ok_or_else(refuse)? * 1000.0;
    // The kernel grants no less than a hundredth of a processor.
    if !(10.0..=1_024_000.0).contains(&value) {
        return Err(ValueError::new(text, "is not between 0.01 and 1024 processors", CPUS_HINT));
    }
    Ok(value.round() as u32)
}

/// Reads a whole number between two bounds.
///
/// # Errors
/// The text is none.
pub fn parse_count(text: &str, least: u32, most: u32) -> Result<u32, ValueError> {
    // Rust's own parser takes `+5`, which nobody means.
    let number = text.parse::<u32>().ok().filter(|_| !text.starts_with('+'));
    number.filter(|number| (least..=most).contains(number)).ok_or_else(|| {
        let problem = format!("is not a whole number between {least} and {most}");
        ValueError::new(text, &problem, &format!("type a number such as `{}`", least.max(2)))
    })
}

/// A size for people: `2 GiB`, `1.5 GiB`, `300 bytes`.
#[must_use]
pub fn show_bytes(bytes: u64) -> String {
    let units = [(1_u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes.is_multiple_of(unit) => format!("{} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

/// Digits with at most one point: neither `1e3` nor `inf`, which Rust's own parser would take.
fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse::<f64>().ok().filter(|number| plain && number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_type_them() {
        for (text, value) in [
            ("512m", 512 << 20),
            ("2g", 2 << 30),
            ("2G", 2 << 30),
            ("2GiB", 2 << 30),
            ("2GB", 2 << 30),
            ("1.5g", 3 << 29),
            ("1048576", 1 << 20),
            ("1048576b", 1 << 20),
            ("64k", 64 << 10),
        ] {
            assert_eq!(parse_bytes(text, 1), Ok(value), "{text}");
        }
        for text in ["", "0", "-1g", "g", "2x", "2 g", "1e3", "99999999t", "inf", "1.2.3g", "2gg"] {
            assert!(parse_bytes(text, 1).is_err(), "{text}");
        }
        let low = parse_bytes("1m", LEAST_MEMORY_BYTES).unwrap_err();
        assert_eq!(low.to_string(), "`1m` is less than 16 MiB; type a size such as `512m`, `2g` or `2GiB`");
    }

    #[test]
    fn processors_read_as_people_type_them() {
        assert_eq!(parse_cpus_milli("0.5"), Ok(500));
        assert_eq!(parse_cpus_milli("1.0"), Ok(1000));
        assert_eq!(parse_cpus_milli("2"), Ok(2000));
        for text in ["", "0", "0.001", "-1", "1e3", "all", "5000", ".", "nan"] {
            assert!(parse_cpus_milli(text).is_err(), "{text}");
        }
    }

    #[test]
    fn counts_are_whole_and_within_their_bounds() {
        assert_eq!(parse_count("256", 1, MOST_PIDS), Ok(256));
        for text in ["", "0", "-1", "+5", "1.5", "4194305", "99999999999", "many"] {
            let error = parse_count(text, 1, MOST_PIDS).unwrap_err();
            assert_eq!(error.problem, format!("`{text}` is not a whole number between 1 and 4194304"));
        }
    }

    #[test]
    fn a_size_that_is_shown_is_short() {
        assert_eq!(show_bytes(2 << 30), "2 GiB");
        assert_eq!(show_bytes(1_600_000_000), "1.5 GiB");
        assert_eq!(show_bytes(300), "300 bytes");
    }
}
