//! A run that failed for good, as it is kept for people and for a replay.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error_class::ErrorClass;

/// What is kept of a run that failed for good. It holds no secret: whoever makes one has redacted it. The run's own
/// record has the request as it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    /// When it failed, such as `2026-11-16T05:14:19.250Z`.
    pub failed_at: String,
    /// Whose fault it was.
    pub error_class: ErrorClass,
    /// What went wrong, for people.
    pub error_message: String,
    /// The number of its last attempt.
    pub attempt: u32,
    /// How many it might have had.
    pub max_attempts: u32,
    /// The request, without its secrets.
    pub payload: Value,
}

impl DeadLetter {
    /// A time as letters have it: ISO 8601, UTC, milliseconds.
    #[must_use]
    pub fn time(at_ms: u64) -> String {
        let (seconds, ms) = (at_ms / 1000, at_ms % 1000);
        let (days, of_day) = (seconds / 86_400, seconds % 86_400);
        let (year, month, day) = date(days);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

/// The Gregorian date of a day, counted from 1970-01-01. Years are counted from the 1st of March, so that the leap
/// day is the last of its year; 146,097 days are 400 years.
fn date(days: u64) -> (u64, u64, u64) {
    let from_march_0 = days + 719_468;
    let (era, of_era) = (from_march_0 / 146_097, from_march_0 % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_iso_8601() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_704_067_199, "2023-12-31T23:59:59.000Z"),
            (1_709_210_096, "2024-02-29T12:34:56.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(DeadLetter::time(seconds * 1000), expected);
        }
        assert_eq!(DeadLetter::time(1_709_210_096_007), "2024-02-29T12:34:56.007Z");
    }

    #[test]
    fn the_fields_are_those_that_others_read() {
        let letter = DeadLetter {
            failed_at: DeadLetter::time(0),
            error_class: ErrorClass::Quota,
            error_message: "no more for now".to_owned(),
            attempt: 2,
            max_attempts: 2,
            payload: Value::Null,
        };
        let value = serde_json::to_value(&letter).unwrap();
        let keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = ["attempt", "errorClass", "errorMessage", "failedAt", "maxAttempts", "payload"];
        assert_eq!(keys, expected);
        assert_eq!(value["errorClass"], "quota");
    }
}
