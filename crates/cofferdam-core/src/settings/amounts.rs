//! Amounts of memory, processors and processes, as text or as numbers.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

use crate::quantity::{LEAST_MEMORY_BYTES, MOST_PIDS, parse_bytes, parse_count, parse_cpus_milli};
use crate::value::ValueError;

/// Memory, such as `2g`. At least what the worker needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Typed", into = "String")]
pub struct MemorySize(u64);

/// Processors, such as `1.0` or 0.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Typed", into = "String")]
pub struct Cpus(u32);

/// Processes and threads, such as 256. At least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Typed", into = "u32")]
pub struct PidsLimit(u32);

impl MemorySize {
    /// In bytes.
    #[must_use]
    pub fn bytes(self) -> u64 {
        self.0
    }
}

impl Cpus {
    /// In thousandths of one processor.
    #[must_use]
    pub fn milli(self) -> u32 {
        self.0
    }
}

impl PidsLimit {
    /// How many.
    #[must_use]
    pub fn count(self) -> u32 {
        self.0
    }
}

impl FromStr for MemorySize {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        parse_bytes(text, LEAST_MEMORY_BYTES).map(Self)
    }
}

impl FromStr for Cpus {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        parse_cpus_milli(text).map(Self)
    }
}

impl FromStr for PidsLimit {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        parse_count(text, 1, MOST_PIDS).map(Self)
    }
}

impl fmt::Display for MemorySize {
    /// The largest unit in which it is a whole number: nothing is lost.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_u64 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")];
        match units.into_iter().find(|(unit, _)| self.0.is_multiple_of(*unit)) {
            Some((unit, name)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{}", self.0),
        }
    }
}

impl fmt::Display for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.0) / 1000.0)
    }
}

impl From<MemorySize> for String {
    fn from(memory: MemorySize) -> Self {
        memory.to_string()
    }
}

impl From<Cpus> for String {
    fn from(cpus: Cpus) -> Self {
        cpus.to_string()
    }
}

impl From<PidsLimit> for u32 {
    fn from(pids: PidsLimit) -> Self {
        pids.0
    }
}

macro_rules! typed {
    ($($value:ty),*) => { $(
        impl TryFrom<Typed> for $value {
            type Error = ValueError;

            fn try_from(typed: Typed) -> Result<Self, ValueError> {
                typed.0.parse()
            }
        }
    )* };
}
typed!(MemorySize, Cpus, PidsLimit);

/// What stands in the file, as text: both `"1.0"` and `1` are how people write an amount.
struct Typed(String);

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
