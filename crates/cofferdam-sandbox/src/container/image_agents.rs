//! Which agents an image has. They are started as an agent would be, each with `--version`.

use std::collections::BTreeMap;
use std::time::Duration;

use cofferdam_core::{Policy, inside};

use super::Memory;
use crate::backend::{Finding, Status};

/// One of them takes seconds to start on a busy machine.
pub(crate) const AGENTS_DEADLINE: Duration = Duration::from_secs(120);

/// The agents, by the names of their findings, of their commands, and for people.
const AGENTS: [(&str, &str, &str); 3] = [
    ("claude_code", "claude", "Claude Code"),
    ("codex", "codex", "Codex"),
    ("opencode", "opencode", "OpenCode"),
];

/// A line for each agent that is there: its command, where it is, and what it says of itself.
const FIND_AGENTS: &str = "export HOME=/tmp; for name in claude codex opencode; do \
     program=$(command -v \"$name\") || continue; \
     printf '%s\\t%s\\t%s\\n' \"$name\" \"$program\" \"$(\"$name\" --version 2>/dev/null | head -n 1)\"; done";

/// The program that looks for them, in the container.
pub(crate) fn find_agents() -> [String; 3] {
    ["/bin/sh", "-c", FIND_AGENTS].map(str::to_owned)
}

/// Where they write what they write at every start.
pub(crate) fn scratch(policy: &Policy) -> Memory {
    let options = format!("rw,exec,nosuid,nodev,size={},mode=1777", policy.limits.memory_bytes);
    Memory { target: inside::TMP.into(), options }
}

/// The image could not be asked.
pub(crate) fn unknown_agents(why: &str) -> Vec<Finding> {
    let unknown =
        |(name, _, title)| Finding::unknown(name, format!("the image cannot be asked for {title}: {why}"));
    AGENTS.map(unknown).into()
}

/// A finding for each agent, from what the program printed.
pub(crate) fn agents_in(output: &str, policy: &Policy) -> Vec<Finding> {
    let said = |line| {
        let (command, rest) = str::split_once(line, '\t')?;
        Some((command, rest.split_once('\t')?))
    };
    let found: BTreeMap<&str, (&str, &str)> = output.lines().filter_map(said).collect();
    let image = &policy.container.image;
    let again = "cofferdam sandbox build-image";
    let finding = |(name, command, title)| match found.get(command) {
        Some((program, version)) if version.contains(|c: char| c.is_ascii_digit()) => {
            Finding::ok(name, format!("{title}: {} ({program} in the image)", version.trim()))
        }
        Some((program, _)) => {
            let detail = format!("{title}: {program} in {image} does not start");
            Finding::new(name, Status::Weak, &detail, again)
        }
        None => Finding::new(name, Status::Weak, &format!("{image} has no {title}"), again),
    };
    AGENTS.map(finding).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_an_image_are_found_missing_or_broken() {
        let output = "claude\t/usr/local/bin/claude\t2.1.197 (Claude Code)\n\
                      codex\t/usr/local/bin/codex\tKilled\nnoise\n";
        let found = agents_in(output, &Policy::default());
        let status: Vec<(&str, Status)> = found.iter().map(|one| (one.name, one.status)).collect();
        assert_eq!(
            status,
            [("claude_code", Status::Ok), ("codex", Status::Weak), ("opencode", Status::Weak)]
        );
        assert!(found[0].detail.contains("2.1.197"), "{found:?}");
        assert!(found[1].detail.contains("does not start"), "{found:?}");
        assert!(found[2].detail.contains("has no OpenCode"), "{found:?}");
    }
}
