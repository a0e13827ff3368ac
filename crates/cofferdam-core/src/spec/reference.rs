//! The page of phases and gates, made from their data.

use super::gate::{criteria, must_haves};
use super::{GATE_TO_PASS, MOST_PHASE_BYTES, MOST_TRIES, PHASES_VERSION, Phase};

const PAGE: &str = include_str!("reference.md");

/// `docs/reference/specs.md`: the phases, and what each gate asks for.
#[must_use]
pub fn reference() -> String {
    PAGE.replace("{{phases}}", &phases())
        .replace("{{tries}}", &MOST_TRIES.to_string())
        .replace("{{bytes}}", &MOST_PHASE_BYTES.to_string())
        .replace("{{pass}}", &GATE_TO_PASS.to_string())
        .replace("{{gates}}\n", &gates())
}

fn phases() -> String {
    let mut table = format!("Version {PHASES_VERSION} of the list:\n\n")
        + "| phase | unless the spec says otherwise | seconds | turns of the agent in one try |\n|---|---|---|---|\n";
    for &phase in Phase::ALL {
        let is_default = if Phase::DEFAULT.contains(&phase) { "yes" } else { "no" };
        let (seconds, turns) = (phase.default_seconds(), phase.default_max_turns());
        table.push_str(&format!("| `{phase}` | {is_default} | {seconds} | {turns} |\n"));
    }
    table
}

fn gates() -> String {
    Phase::ALL.iter().copied().filter(|phase| phase.is_judged()).map(gate).collect::<Vec<_>>().join("\n")
}

fn gate(phase: Phase) -> String {
    let mut section = format!("### `{phase}`\n\n| field | weight | what is asked for |\n|---|---|---|\n");
    for criterion in criteria(phase) {
        section
            .push_str(&format!("| `{}` | {}% | {} |\n", criterion.field, criterion.weight, criterion.asks));
    }
    section.push_str("\nWhatever the score is:\n\n");
    for must in must_haves(phase) {
        section.push_str(&format!("- {}\n", must.says));
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_row_and_nothing_left_to_fill_in() {
        let page = reference();
        assert!(!page.contains("{{"), "{page}");
        for &phase in Phase::ALL {
            assert!(page.contains(&format!("\n| `{phase}` | ")), "{phase}");
            for criterion in criteria(phase) {
                let row =
                    format!("\n| `{}` | {}% | {} |\n", criterion.field, criterion.weight, criterion.asks);
                assert!(page.contains(&row), "{row}");
            }
        }
        assert!(page.contains("| `requirements` | yes | 300 | 20 |"), "{page}");
    }
}
