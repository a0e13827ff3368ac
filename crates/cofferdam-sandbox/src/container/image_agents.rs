//! Which agents an image has. They are started as an agent would be, each with `--version`.

use std::collections::BTreeMap;
use std::time::Duration;

use cofferdam_core::{Policy, inside};

use super::Memory;
use crate::backend::{Finding, Status};
use crate::options::ImageAgent;

/// One of them takes seconds to start on a busy machine.
pub(crate) const AGENTS_DEADLINE: Duration = Duration::from_secs(120);

/// The program that looks for these agents, in the container. It prints a line for each that is there: its command, where it is,
/// and what it says of itself.
pub(crate) fn find_agents(agents: &[ImageAgent]) -> [String; 3] {
    let programs = agents.iter().map(|agent| agent.program).collect::<Vec<_>>().join(" ");
    let find = format!(
        "export HOME=/tmp; for name in {programs}; do program=$(command -v \"$name\") || continue; \
         printf '%s\\t%s\\t%s\\n' \"$name\" \"$program\" \"$(\"$name\" --version 2>/dev/null | head -n 1)\"; done"
    );
    ["/bin/sh".to_owned(), "-c".to_owned(), find]
}

/// Where they write what they write at every start.
pub(crate) fn scratch(policy: &Policy) -> Memory {
    let options = format!("rw,exec,nosuid,nodev,size={},mode=1777", policy.limits.memory_bytes);
    Memory { target: inside::TMP.into(), options }
}

/// The image could not be asked.
pub(crate) fn unknown_agents(agents: &[ImageAgent], why: &str) -> Vec<Finding> {
    let detail = |title| format!("the image cannot be asked for {title}: {why}");
    agents.iter().map(|agent| Finding::unknown(agent.name, detail(agent.title))).collect()
}

/// A finding for each agent, from what the program printed.
pub(crate) fn agents_in(output: &str, agents: &[ImageAgent], policy: &Policy) -> Vec<Finding> {
    let said = |line| {
        let (command, rest) = str::split_once(line, '\t')?;
        Some((command, rest.split_once('\t')?))
    };
    let found: BTreeMap<&str, (&str, &str)> = output.lines().filter_map(said).collect();
    let image = &policy.container.image;
    let again = "cofferdam sandbox build-image";
    let finding = |&ImageAgent { name, program, title, .. }: &ImageAgent| match found.get(program) {
        Some((program, version)) if version.contains(|c: char| c.is_ascii_digit()) => {
            Finding::ok(name, format!("{title}: {} ({program} in the image)", version.trim()))
        }
        Some((program, _)) => {
            let detail = format!("{title}: {program} in {image} does not start");
            Finding::new(name, Status::Weak, &detail, again)
        }
        None => Finding::new(name, Status::Weak, &format!("{image} has no {title}"), again),
    };
    agents.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_an_image_are_found_missing_or_broken() {
        let output = "claude\t/usr/local/bin/claude\t2.1.197 (Claude Code)\n\
                      codex\t/usr/local/bin/codex\tKilled\nnoise\n";
        let agent = |name, program, title| ImageAgent { name, program, title, package: "" };
        let agents = [
            agent("claude_code", "claude", "Claude Code"),
            agent("codex", "codex", "Codex"),
            agent("opencode", "opencode", "OpenCode"),
        ];
        let found = agents_in(output, &agents, &Policy::default());
        let status: Vec<(&str, Status)> = found.iter().map(|one| (one.name, one.status)).collect();
        assert_eq!(
            status,
            [("claude_code", Status::Ok), ("codex", Status::Weak), ("opencode", Status::Weak)]
        );
        assert!(found[0].detail.contains("2.1.197"), "{found:?}");
        assert!(found[1].detail.contains("does not start"), "{found:?}");
        assert!(found[2].detail.contains("has no OpenCode"), "{found:?}");
        let unknown = unknown_agents(&agents, "it is gone");
        assert_eq!(unknown[0].detail, "the image cannot be asked for Claude Code: it is gone");
        let [_, _, find] = find_agents(&agents);
        assert!(find.contains("for name in claude codex opencode; do program=$(command"), "{find}");
    }
}
