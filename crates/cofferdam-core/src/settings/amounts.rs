//! Amounts: sizes, processors and counts, as text or as numbers.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

use crate::quantity::{
    LEAST_DISK_BYTES, LEAST_MEMORY_BYTES, LEAST_OUTPUT_BYTES, MOST_PIDS, parse_bytes, parse_count,
    parse_cpus_milli,
};
use crate::run_input::bounds::{MOST_ATTEMPTS, MOST_TIMEOUT_SECONDS};
use crate::value::ValueError;

/// A size in bytes, such as `2g`, and at least this many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Typed", into = "String")]
pub struct Size<const LEAST: u64>(u64);

/// A whole number within these bounds, such as 256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Typed", into = "u32")]
pub struct Count<const LEAST: u32, const MOST: u32>(u32);

/// Processors, such as `1.0` or 0.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Typed", into = "String")]
pub struct Cpus(u32);

/// Memory: at least what the worker needs.
pub type MemorySize = Size<LEAST_MEMORY_BYTES>;
/// What may be written to disk: at least what a workspace needs.
pub type DiskSize = Size<LEAST_DISK_BYTES>;
/// What may be printed: at least a few lines.
pub type OutputSize = Size<LEAST_OUTPUT_BYTES>;
/// Processes and threads.
pub type PidsLimit = Count<1, MOST_PIDS>;
/// Open files of one process: at least what any program needs to start.
pub type OpenFiles = Count<16, 1_048_576>;
/// Seconds of one attempt, up to seven days.
pub type TimeoutSeconds = Count<1, MOST_TIMEOUT_SECONDS>;
/// Attempts of one run.
pub type MaxAttempts = Count<1, MOST_ATTEMPTS>;
/// Runs at the same time; 0 is no limit.
pub type MaxConcurrency = Count<0, 10_000>;

impl<const LEAST: u64> Size<LEAST> {
    /// In bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0
    }

    /// A built-in default.
    pub(super) const fn of(bytes: u64) -> Self {
        assert!(bytes >= LEAST);
        Self(bytes)
    }
}

impl<const LEAST: u32, const MOST: u32> Count<LEAST, MOST> {
    /// How many.
    #[must_use]
    pub fn count(self) -> u32 {
        self.0
    }

    /// A built-in default.
    pub(super) const fn of(count: u32) -> Self {
        assert!(count >= LEAST && count <= MOST);
        Self(count)
    }
}

impl Cpus {
    /// In thousandths of one processor.
    #[must_use]
    pub fn milli(self) -> u32 {
        self.0
    }

    /// A built-in default.
    pub(super) const fn of_milli(milli: u32) -> Self {
        Self(milli)
    }
}

impl<const LEAST: u64> FromStr for Size<LEAST> {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        parse_bytes(text, LEAST).map(Self)
    }
}

impl<const LEAST: u32, const MOST: u32> FromStr for Count<LEAST, MOST> {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        parse_count(text, LEAST, MOST).map(Self)
    }
}

impl FromStr for Cpus {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        parse_cpus_milli(text).map(Self)
    }
}

impl<const LEAST: u64> fmt::Display for Size<LEAST> {
    /// The largest unit in which it is a whole number: nothing is lost.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_bytes(self.0, f)
    }
}

/// In the largest unit in which it is a whole number.
pub(super) fn write_bytes(bytes: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let units = [(1_u64 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")];
    match units.into_iter().find(|(unit, _)| bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => write!(f, "{}{name}", bytes / unit),
        None => write!(f, "{bytes}"),
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1000.0)
    }
}

impl<const LEAST: u64> From<Size<LEAST>> for String {
    fn from(size: Size<LEAST>) -> Self {
        size.to_string()
    }
}

impl From<Cpus> for String {
    fn from(cpus: Cpus) -> Self {
        cpus.to_string()
    }
}

impl<const LEAST: u32, const MOST: u32> From<Count<LEAST, MOST>> for u32 {
    fn from(count: Count<LEAST, MOST>) -> Self {
        count.0
    }
}

impl<const LEAST: u64> TryFrom<Typed> for Size<LEAST> {
    type Error = ValueError;

    fn try_from(typed: Typed) -> Result<Self, ValueError> {
        typed.0.parse()
    }
}

impl<const LEAST: u32, const MOST: u32> TryFrom<Typed> for Count<LEAST, MOST> {
    type Error = ValueError;

    fn try_from(typed: Typed) -> Result<Self, ValueError> {
        typed.0.parse()
    }
}

impl TryFrom<Typed> for Cpus {
    type Error = ValueError;

    fn try_from(typed: Typed) -> Result<Self, ValueError> {
        typed.0.parse()
    }
}

/// What stands in the file, as text: both `"1.0"` and `1` are how people write an amount.
pub(super) struct Typed(String);

impl Typed {
    /// As it was typed.
    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Typed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;

        impl Visitor<'_> for TextOrNumber {
            type Value = Typed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an amount; type a text such as \"2g\" or \"1.0\", or a number")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Typed, E> {
                Ok(Typed(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Typed, E> {
                Ok(Typed(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Typed, E> {
                Ok(Typed(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Typed, E> {
                Ok(Typed(number.to_string()))
            }
        }

        deserializer.deserialize_any(TextOrNumber)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_prints_as_text_that_reads_back() {
        for (text, printed) in [("2g", "2g"), ("1536m", "1536m"), ("1.5G", "1536m"), ("20000001", "20000001")]
        {
            let memory: MemorySize = text.parse().unwrap();
            assert_eq!(memory.to_string(), printed);
            assert_eq!(printed.parse(), Ok(memory));
        }
        for (text, printed) in [("1.0", "1"), ("0.5", "0.5"), ("0.125", "0.125"), ("64", "64")] {
            let cpus: Cpus = text.parse().unwrap();
            assert_eq!(cpus.to_string(), printed);
            assert_eq!(printed.parse(), Ok(cpus));
        }
    }
}
