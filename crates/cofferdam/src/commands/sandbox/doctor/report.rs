//! The findings as text and as JSON, and what they come to.

use cofferdam_core::{Agent, Mode};
use cofferdam_sandbox::{Finding, Status};
use serde_json::{Value, json};

use crate::sanitize;

/// Every finding, and which runs would start.
pub(crate) struct Report {
    mode: Mode,
    findings: Vec<Finding>,
    /// Agents that are installed and have a key.
    agents: Vec<Agent>,
}

impl Report {
    pub(super) fn new(mode: Mode, findings: Vec<Finding>, agents: Vec<Agent>) -> Self {
        Self { mode, findings, agents }
    }

    /// Whether `cofferdam run -- CMD` would start: a trial came up, and nothing is missing.
    pub(super) fn would_start(&self) -> bool {
        let came_up = |finding: &Finding| finding.name == "sandbox" && finding.status == Status::Ok;
        self.findings.iter().any(came_up)
            && self.findings.iter().all(|finding| finding.status != Status::Missing)
    }

    /// One line a finding, what to type below it, and which runs would start.
    pub(super) fn to_text(&self) -> String {
        let widest = self.findings.iter().map(|finding| finding.name.len()).max().unwrap_or_default();
        let mut text = String::new();
        for finding in &self.findings {
            let status = word(finding.status);
            text.push_str(&format!(
                "{status:<7}  {:<widest$}  {}\n",
                finding.name,
                sanitize::line(&finding.detail)
            ));
            if let Some(remedy) = &finding.remedy {
                text.push_str(&format!("{:<7}  {:<widest$}  > {}\n", "", "", sanitize::line(remedy)));
            }
        }
        let run = match self.mode {
            Mode::Native => "cofferdam run".to_owned(),
            Mode::Host | Mode::Docker | Mode::Apple => format!("cofferdam run --mode {}", self.mode),
        };
        text.push_str(&format!("\n{run} -- CMD   {}\n", self.verdict_on_commands()));
        text.push_str(&format!("{run} PROMPT   {}\n", self.verdict_on_prompts()));
        text
    }

    /// The same for programs.
    pub(crate) fn to_json(&self) -> Value {
        let agents: Vec<&str> = self.agents.iter().map(|agent| agent.as_str()).collect();
        let agents = if self.would_start() { agents } else { Vec::new() };
        json!({
            "mode": self.mode,
            "would_start": { "command": self.would_start(), "agents": agents },
            "findings": self.findings,
        })
    }

    fn verdict_on_commands(&self) -> String {
        if self.would_start() {
            return "would start".to_owned();
        }
        let missing = self.findings.iter().filter(|finding| finding.status == Status::Missing);
        let names: Vec<&str> = missing.map(|finding| finding.name).collect();
        format!(
            "would NOT start: {}",
            if names.is_empty() { "no sandbox was tried".to_owned() } else { names.join(", ") }
        )
    }

    fn verdict_on_prompts(&self) -> String {
        let agents: Vec<&str> = self.agents.iter().map(|agent| agent.as_str()).collect();
        match (self.would_start(), agents.is_empty()) {
            (true, false) => format!("would start with {}", agents.join(", ")),
            (true, true) => "would NOT start: no agent is installed and has a key".to_owned(),
            (false, _) => "would NOT start".to_owned(),
        }
    }
}

fn word(status: Status) -> &'static str {
    match status {
        Status::Ok => "ok",
        Status::Weak => "weak",
        Status::Missing => "MISSING",
        Status::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_agent::profile;

    use super::*;

    fn report(sandbox: Status, agents: Vec<Agent>) -> Report {
        let found = Finding { name: "sandbox", status: sandbox, detail: "a\u{1b}[2Jb".into(), remedy: None };
        let limits = Finding::new("limits", Status::Weak, "best effort", "sudo this");
        Report::new(Mode::Native, vec![found, limits], agents)
    }

    #[test]
    fn the_last_lines_say_which_runs_would_start() {
        insta::assert_snapshot!(report(Status::Ok, vec![Agent::Codex]).to_text(), @r"
        ok       sandbox  ab
        weak     limits   best effort
                          > sudo this

        cofferdam run -- CMD   would start
        cofferdam run PROMPT   would start with codex
        ");
        let none = report(Status::Ok, vec![]);
        assert!(none.would_start() && none.to_text().contains("no agent is installed and has a key"));
    }

    #[test]
    fn what_is_missing_or_was_not_tried_would_not_start() {
        for status in [Status::Missing, Status::Unknown, Status::Weak] {
            let report = report(status, vec![Agent::Codex]);
            assert!(!report.would_start(), "{status:?}");
            assert_eq!(report.to_json()["would_start"], json!({ "command": false, "agents": [] }));
            assert!(report.to_text().ends_with("cofferdam run PROMPT   would NOT start\n"));
        }
    }

    #[test]
    fn every_finding_and_every_answer_is_in_the_documentation() {
        let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/troubleshooting.md"));
        let words =
            cofferdam_runner::auth::AuthWord::ALL.iter().map(|word| word.as_str()).collect::<Vec<_>>();
        let agents = Agent::ALL.map(Agent::as_str);
        // The others' logins are found under the name of their vendor's key.
        let of_several = |agent: &Agent| (profile(*agent).vendors)(None).len() > 1;
        let logins = Agent::ALL.into_iter().filter(of_several).map(|agent| profile(agent).login.finding);
        let logins: Vec<&str> = logins.collect();
        for name in cofferdam_sandbox::FINDINGS.iter().chain(&agents).chain(&logins).chain(&words) {
            assert!(page.contains(&format!("\n| `{name}` | ")), "{name}");
        }
    }
}
