//! Where a run stands in the queue, and who may take it.

use serde::{Deserialize, Serialize};

use crate::ids::{PlaceId, ProjectId};
use crate::run_input::bounds::MOST_PRIORITY;
use crate::settings::{AgentName, Role};
use crate::text::checked_text;
use crate::value::ValueError;

/// Where a run stands in the queue, and who may take it. The default is what `cofferdam run` asks for: nothing special.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Placement {
    /// Which kind of work it is: a node takes the roles that it was started with.
    pub role: Role,
    /// Who goes first among those that wait.
    pub priority: Priority,
    /// Of one lane at most one run is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<Lane>,
    /// The project that it counts for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<ProjectId>,
    /// The named agent that it counts for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The only state folder whose nodes may take it: it works on a path of that machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceId>,
}

impl Placement {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// Who goes first among those that wait: the higher number, and among equals the older run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Priority(i8);

impl Priority {
    const MOST: i64 = MOST_PRIORITY as i64;

    /// The number, from -100 to 100.
    #[must_use]
    pub fn get(self) -> i8 {
        self.0
    }
}

impl TryFrom<i64> for Priority {
    type Error = ValueError;

    fn try_from(number: i64) -> Result<Self, ValueError> {
        match i8::try_from(number) {
            Ok(small) if number.abs() <= Self::MOST => Ok(Self(small)),
            _ => Err(ValueError::new(
                &number.to_string(),
                "is not a priority",
                "type a number from -100 to 100",
            )),
        }
    }
}

impl From<Priority> for i64 {
    fn from(priority: Priority) -> Self {
        priority.0.into()
    }
}

checked_text! {
    /// Runs of one lane wait for each other. Whoever sends them chooses its name, such as a branch's.
    Lane: lane => ValueError;
}

impl Lane {
    const LONGEST: usize = 200;
}

fn lane(text: &str) -> Result<String, ValueError> {
    let is_plain = !text.chars().any(char::is_control) && text.trim() == text;
    let is_lane = is_plain && (1..=Lane::LONGEST).contains(&text.len());
    let hint = "type 1 to 200 bytes without control characters and without spaces around, such as `release`";
    ValueError::unless(is_lane, text, "is not a lane", hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_a_number_from_minus_100_to_100() {
        for number in [-100, 0, 100] {
            assert_eq!(i64::from(Priority::try_from(number).unwrap()), number);
        }
        for number in [-101, 101, i64::MIN, i64::MAX] {
            assert!(Priority::try_from(number).is_err(), "{number}");
        }
    }

    #[test]
    fn a_lane_is_one_clean_line() {
        assert_eq!("feature/x y".parse::<Lane>().unwrap().as_str(), "feature/x y");
        for text in ["", " x", "x\n", "a\0b", &"x".repeat(201)] {
            assert!(text.parse::<Lane>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_request_of_before_has_the_default_placement() {
        assert_eq!(serde_json::from_str::<Placement>("{}").unwrap(), Placement::default());
    }
}
