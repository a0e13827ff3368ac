//! How specs are worked on: the key `specs`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amounts::{Count, TimeoutSeconds};
use crate::run_input::bounds::MOST_TURNS;
use crate::spec::Phase;

/// How specs are worked on, phase by phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SpecSettings {
    /// What each phase may take.
    pub phases: PhasesSettings,
    /// Seconds that one run of a spec may take, whatever its phases may take together. `service.max_execution_time_ms` does
    /// not bound it.
    pub max_seconds: TimeoutSeconds,
    /// Who approves what a phase brought: the spec's `owner`, as well as whoever has the scope `system`, or `system` alone.
    pub approvals_by: ApprovalsBy,
}

/// What each phase may take.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PhasesSettings {
    /// Reads the project and says what is there.
    pub explore: PhaseSettings,
    /// Says what is to be made, for whom and why.
    pub prd: PhaseSettings,
    /// Says what must be true when it is done.
    pub requirements: PhaseSettings,
    /// Says how it is built.
    pub design: PhaseSettings,
    /// Cuts the work into tasks.
    pub tasks: PhaseSettings,
    /// Checks the whole against itself.
    pub sync: PhaseSettings,
    /// Does the tasks.
    pub implement: PhaseSettings,
}

/// What one phase may take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PhaseSettings {
    /// Seconds that all tries of the phase may take together. Without it 180 for `explore` and `tasks`, 300 for `prd`,
    /// `requirements` and `design`, 120 for `sync`, and 600 for one task of `implement`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<TimeoutSeconds>,
    /// Turns that an agent may take in one try, where its CLI can count them. Without it 25 for `explore` and `design`, 20 for
    /// `prd` and `requirements`, 15 for `tasks`, 10 for `sync`, and 50 for `implement`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<PhaseTurns>,
}

/// Turns of the model in one try of a phase.
pub type PhaseTurns = Count<1, MOST_TURNS>;

/// Who approves what a phase brought.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
    strum::EnumString,
)]
#[serde(try_from = "String", into = "String")]
#[strum(serialize_all = "snake_case")]
pub enum ApprovalsBy {
    /// The spec's owner, and whoever has the scope `system`.
    #[default]
    Owner,
    /// Whoever has the scope `system`.
    System,
}

impl Default for SpecSettings {
    fn default() -> Self {
        Self {
            phases: PhasesSettings::default(),
            max_seconds: TimeoutSeconds::of(3_600),
            approvals_by: ApprovalsBy::default(),
        }
    }
}

impl SpecSettings {
    /// Seconds that all tries of a phase may take together.
    #[must_use]
    pub fn seconds_of(&self, phase: Phase) -> u32 {
        self.phases.of(phase).seconds.map_or_else(|| phase.default_seconds(), Count::count)
    }

    /// Turns that an agent may take in one try of a phase.
    #[must_use]
    pub fn max_turns_of(&self, phase: Phase) -> u32 {
        self.phases.of(phase).max_turns.map_or_else(|| phase.default_max_turns(), Count::count)
    }

    /// How long a run of these phases may take, in milliseconds.
    #[must_use]
    pub fn timeout_ms_of(&self, phases: &[Phase]) -> u64 {
        let together: u64 = phases.iter().map(|phase| u64::from(self.seconds_of(*phase))).sum();
        together.min(u64::from(self.max_seconds.count())) * 1_000
    }
}

impl PhasesSettings {
    fn of(&self, phase: Phase) -> &PhaseSettings {
        match phase {
            Phase::Explore => &self.explore,
            Phase::Prd => &self.prd,
            Phase::Requirements => &self.requirements,
            Phase::Design => &self.design,
            Phase::Tasks => &self.tasks,
            Phase::Sync => &self.sync,
            Phase::Implement => &self.implement,
        }
    }
}

impl fmt::Display for ApprovalsBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.into())
    }
}

impl From<ApprovalsBy> for String {
    fn from(by: ApprovalsBy) -> Self {
        by.to_string()
    }
}

impl TryFrom<String> for ApprovalsBy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let shown = crate::egress::printable(&text);
        text.parse().map_err(|_| format!("`{shown}` is not known; type one of `owner`, `system`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> SpecSettings {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_phase_takes_what_its_settings_say_and_else_its_default() {
        let settings = read(r#"{"phases": {"design": {"seconds": 900}, "tasks": {"max_turns": "7"}}}"#);
        assert_eq!((settings.seconds_of(Phase::Design), settings.max_turns_of(Phase::Design)), (900, 25));
        assert_eq!((settings.seconds_of(Phase::Tasks), settings.max_turns_of(Phase::Tasks)), (180, 7));
        assert_eq!(settings.approvals_by, ApprovalsBy::Owner);
    }

    #[test]
    fn a_run_takes_what_its_phases_take_together_within_the_bound() {
        let settings = SpecSettings::default();
        assert_eq!(settings.timeout_ms_of(Phase::DEFAULT), 1_080_000);
        assert_eq!(settings.timeout_ms_of(&[Phase::Sync]), 120_000);
        let settings = read(r#"{"max_seconds": 200}"#);
        assert_eq!(settings.timeout_ms_of(Phase::DEFAULT), 200_000);
        assert_eq!(settings.timeout_ms_of(&[Phase::Sync]), 120_000);
    }

    #[test]
    fn what_is_said_of_the_defaults_is_so() {
        let schema = serde_json::to_value(schemars::schema_for!(PhaseSettings)).unwrap();
        for &phase in Phase::ALL {
            for (key, default) in
                [("seconds", phase.default_seconds()), ("max_turns", phase.default_max_turns())]
            {
                let text = schema["properties"][key]["description"].as_str().unwrap().replace('\n', " ");
                let parts =
                    text.split("Without it ").nth(1).unwrap().split(", ").collect::<Vec<_>>().join(" ");
                let before = parts.split(&format!("`{phase}`")).next().unwrap();
                let number = before.split_whitespace().rev().find_map(|word| word.parse::<u32>().ok());
                assert_eq!(number, Some(default), "{phase} {key}");
            }
        }
    }
}
