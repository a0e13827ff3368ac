//! Times as other programs read them.

/// A time as ISO 8601 has it, in UTC and with milliseconds: `2026-11-16T05:14:19.250Z`.
#[must_use]
pub fn iso_time(at_ms: u64) -> String {
    let (seconds, ms) = (at_ms / 1000, at_ms % 1000);
    let (year, month, day) = date(seconds / 86_400);
    let of_day = seconds % 86_400;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// The Gregorian date of a day, counted from 1970-01-01. Years are counted from the 1st of March, so that the leap day
/// is the last of its year; 146,097 days are 400 years.
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
    fn leap_days_and_ends_of_years_are_where_they_belong() {
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_767_225_599, "2025-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_time(seconds * 1000), expected);
        }
        assert_eq!(iso_time(1_250), "1970-01-01T00:00:01.250Z");
    }
}
