//! How long is kept what runs leave: the key `retention`.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::amounts::{Typed, write_bytes};
use crate::quantity::{parse_bytes, parse_count};
use crate::value::ValueError;

/// The most days that can be asked for: a hundred years.
const MOST_DAYS: u32 = 36_525;
/// The least bytes that can be asked for.
const LEAST_BYTES: u64 = 1 << 20;
/// Days without an end.
const FOREVER: &str = "forever";
/// Bytes without an end.
const UNLIMITED: &str = "unlimited";

/// How long is kept what runs leave, counted from their end, what was fetched for them, and the audit. The nodes of a
/// service remove the rest, once an hour. Dead letters stay until somebody removes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionSettings {
    /// Days until a run is forgotten whole.
    pub runs_days: RetentionDays,
    /// Days until all events of a run but the first and the last are forgotten.
    pub events_days: RetentionDays,
    /// Days until the files of a run are removed.
    pub artifacts_days: RetentionDays,
    /// What the files of all runs may take together: beyond it, those of the runs that ended first are removed. A bucket has no
    /// such limit.
    pub artifacts_size: RetentionSize,
    /// Days until a mirror or a checkout of a git address is removed that no run has used.
    pub checkouts_days: RetentionDays,
    /// What the mirrors and checkouts of a state folder may take together: beyond it, those are removed that were not used
    /// for the longest time. What a run uses stays.
    pub checkouts_size: RetentionSize,
    /// Days until an entry of the audit is forgotten.
    pub audit_days: RetentionDays,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        Self {
            runs_days: RetentionDays::of(90),
            events_days: RetentionDays::of(30),
            artifacts_days: RetentionDays(None),
            artifacts_size: RetentionSize::of(20 << 30),
            checkouts_days: RetentionDays::of(30),
            checkouts_size: RetentionSize::of(20 << 30),
            audit_days: RetentionDays::of(365),
        }
    }
}

impl fmt::Display for RetentionSettings {
    /// One line, for whoever starts a service.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "runs {}, events {}, files {} up to {}, checkouts {} up to {}, audit {}",
            self.runs_days.words(),
            self.events_days.words(),
            self.artifacts_days.words(),
            self.artifacts_size,
            self.checkouts_days.words(),
            self.checkouts_size,
            self.audit_days.words(),
        )
    }
}

/// Days that something is kept, or `forever`, which was written as 0 once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Typed")]
pub struct RetentionDays(Option<u32>);

/// Bytes that something may take, or `unlimited`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Typed")]
pub struct RetentionSize(Option<u64>);

impl RetentionDays {
    /// How many; `None` for ever.
    #[must_use]
    pub fn days(self) -> Option<u32> {
        self.0
    }

    const fn of(days: u32) -> Self {
        assert!(days > 0 && days <= MOST_DAYS);
        Self(Some(days))
    }

    fn words(self) -> String {
        match self.0 {
            None => FOREVER.to_owned(),
            Some(1) => "1 day".to_owned(),
            Some(days) => format!("{days} days"),
        }
    }
}

impl RetentionSize {
    /// How many; `None` without an end.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        self.0
    }

    const fn of(bytes: u64) -> Self {
        assert!(bytes >= LEAST_BYTES);
        Self(Some(bytes))
    }
}

impl FromStr for RetentionDays {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text == FOREVER {
            return Ok(Self(None));
        }
        let days = parse_count(text, 0, MOST_DAYS)
            .map_err(|error| ValueError { hint: format!("{}, or `{FOREVER}`", error.hint), ..error })?;
        Ok(Self(Some(days).filter(|days| *days > 0)))
    }
}

impl FromStr for RetentionSize {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        if text == UNLIMITED {
            return Ok(Self(None));
        }
        let bytes = parse_bytes(text, LEAST_BYTES)
            .map_err(|error| ValueError { hint: format!("{}, or `{UNLIMITED}`", error.hint), ..error })?;
        Ok(Self(Some(bytes)))
    }
}

impl fmt::Display for RetentionSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str(UNLIMITED),
            Some(bytes) => write_bytes(bytes, f),
        }
    }
}

impl Serialize for RetentionDays {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => serializer.serialize_str(FOREVER),
            Some(days) => serializer.serialize_u32(days),
        }
    }
}

impl Serialize for RetentionSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl TryFrom<Typed> for RetentionDays {
    type Error = ValueError;

    fn try_from(typed: Typed) -> Result<Self, ValueError> {
        typed.text().parse()
    }
}

impl TryFrom<Typed> for RetentionSize {
    type Error = ValueError;

    fn try_from(typed: Typed) -> Result<Self, ValueError> {
        typed.text().parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_settings_nothing_fills_a_disk() {
        let kept = RetentionSettings::default();
        assert_eq!(
            (kept.runs_days.days(), kept.events_days.days(), kept.audit_days.days()),
            (Some(90), Some(30), Some(365))
        );
        assert!(kept.artifacts_size.bytes().is_some() && kept.checkouts_size.bytes().is_some());
        assert_eq!(
            kept.to_string(),
            "runs 90 days, events 30 days, files forever up to 20g, checkouts 30 days up to 20g, audit 365 days"
        );
    }

    #[test]
    fn forever_and_unlimited_are_words_that_read_back() {
        let text = r#"{"runs_days":"forever","events_days":0,"audit_days":"7","artifacts_size":"unlimited","checkouts_size":"1.5g"}"#;
        let kept: RetentionSettings = serde_json::from_str(text).unwrap();
        assert_eq!(
            (kept.runs_days.days(), kept.events_days.days(), kept.audit_days.days()),
            (None, None, Some(7))
        );
        assert_eq!((kept.artifacts_size.bytes(), kept.checkouts_size.bytes()), (None, Some(3 << 29)));
        let written = serde_json::to_value(&kept).unwrap();
        assert_eq!(
            (&written["events_days"], &written["checkouts_size"]),
            (&"forever".into(), &"1536m".into())
        );
        assert_eq!(serde_json::from_value::<RetentionSettings>(written).unwrap(), kept);
    }
}
