//! The phases of a spec, in their order.

use serde::{Deserialize, Serialize};
use strum::VariantArray;

use crate::settings::nearest;
use crate::value::ValueError;

/// The version of the list of phases that a new spec is kept with.
pub const PHASES_VERSION: u32 = 1;
/// How often a phase is tried before it has failed.
pub const MOST_TRIES: u32 = 3;
/// The least score that passes a gate.
pub const GATE_TO_PASS: f64 = 0.7;

/// One step of a spec. Each is checked by a gate before the next starts.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case", parse_err_ty = ValueError, parse_err_fn = not_a_phase)]
pub enum Phase {
    /// Reads the project and says what is there.
    Explore,
    /// Says what is to be made, for whom and why.
    Prd,
    /// Says what must be true when it is done, so that it can be checked.
    Requirements,
    /// Says how it is built.
    Design,
    /// Cuts the work into tasks, with their order.
    Tasks,
    /// Checks the whole against itself.
    Sync,
    /// Does the tasks, one commit each.
    Implement,
}

impl Phase {
    /// Every phase, in order.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// The phases of a spec that names none.
    pub const DEFAULT: &[Self] = &[Self::Explore, Self::Requirements, Self::Design, Self::Tasks, Self::Sync];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Seconds that all its tries may take together; for `implement`, what one task may take.
    #[must_use]
    pub fn default_seconds(self) -> u32 {
        match self {
            Self::Explore | Self::Tasks => 180,
            Self::Prd | Self::Requirements | Self::Design => 300,
            Self::Sync => 120,
            Self::Implement => 600,
        }
    }

    /// Turns that an agent may take in one try.
    #[must_use]
    pub fn default_max_turns(self) -> u32 {
        match self {
            Self::Explore | Self::Design => 25,
            Self::Prd | Self::Requirements => 20,
            Self::Tasks => 15,
            Self::Sync => 10,
            Self::Implement => 50,
        }
    }

    /// Whether it ends with a JSON output that a gate judges. `implement` ends with commits.
    #[must_use]
    pub fn is_judged(self) -> bool {
        self != Self::Implement
    }
}

fn not_a_phase(text: &str) -> ValueError {
    let names = || Phase::ALL.iter().map(|phase| phase.as_str());
    let hint = match nearest(text, names()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("the phases are {}", names().collect::<Vec<_>>().join(", ")),
    };
    ValueError::new(text, "is not a phase", &hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_has_one_name_everywhere() {
        for &phase in Phase::ALL {
            assert_eq!(phase.as_str().parse(), Ok(phase));
            assert_eq!(phase.to_string(), phase.as_str());
            assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
        }
        assert!(Phase::ALL.is_sorted() && Phase::DEFAULT.is_sorted());
    }

    #[test]
    fn a_misspelt_phase_is_told_which_was_meant() {
        let error = |text: &str| text.parse::<Phase>().unwrap_err().to_string();
        assert_eq!(error("requirement"), "`requirement` is not a phase; did you mean `requirements`?");
        assert!(
            error("complete").contains("the phases are explore, prd, requirements"),
            "{}",
            error("complete")
        );
        assert!(error("Explore").contains("did you mean `explore`?"));
    }

    #[test]
    fn the_default_phases_take_as_long_as_promised() {
        let seconds: Vec<_> = Phase::ALL.iter().map(|phase| phase.default_seconds()).collect();
        let turns: Vec<_> = Phase::ALL.iter().map(|phase| phase.default_max_turns()).collect();
        assert_eq!(seconds, [180, 300, 300, 300, 180, 120, 600]);
        assert_eq!(turns, [25, 20, 20, 25, 15, 10, 50]);
        assert_eq!(Phase::DEFAULT.iter().filter(|phase| phase.is_judged()).count(), 5);
    }
}
