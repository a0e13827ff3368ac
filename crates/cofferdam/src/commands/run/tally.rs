//! What an agent did, what it was refused and what it cost, added up from the run's events.

use std::collections::{BTreeMap, BTreeSet};

use cofferdam_core::{Event, EventType};
use serde_json::{Value, json};

use crate::sanitize;

/// How many names one line of the summary holds.
const MOST_NAMES: usize = 5;
/// How much of the agent's last words the summary holds.
const LAST_WORDS: usize = 300;

/// Sums over one run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    calls: u64,
    tokens: u64,
    cost_usd: f64,
    /// Whether every call had a price.
    cost_unknown: bool,
    tools: BTreeMap<String, u64>,
    current_tool: Option<String>,
    refused: BTreeMap<String, u64>,
    /// What to type so that it would not have been refused.
    remedies: BTreeSet<String>,
    last_words: Option<String>,
    is_agent: bool,
}

impl Tally {
    /// Takes one event.
    pub(crate) fn note(&mut self, event: &Event) {
        let data = &event.data;
        let text = |key: &str| data.get(key).and_then(Value::as_str).map(str::to_owned);
        match event.event_type {
            EventType::AgentSession => self.is_agent = true,
            EventType::AgentMessage if self.is_agent => {
                self.current_tool = None;
                self.last_words = text("text").or(self.last_words.take());
            }
            EventType::AgentToolUse => {
                let name = text("name").unwrap_or_else(|| "a tool".to_owned());
                *self.tools.entry(name.clone()).or_default() += 1;
                self.current_tool = Some(name);
            }
            EventType::AgentToolResult => self.current_tool = None,
            EventType::ModelUsage => self.spend(data),
            EventType::EgressRefused => {
                self.remedies.extend(text("hint").as_deref().map(remedy));
                let count = data.get("count").and_then(Value::as_u64).unwrap_or(1);
                self.refuse(text("target").or_else(|| text("reason")), count);
            }
            // Its count is how many there were so far, of any kind.
            EventType::ModelRefused => self.refuse(text("path").or_else(|| text("reason")), 1),
            _ => {}
        }
    }

    fn refuse(&mut self, what: Option<String>, count: u64) {
        *self.refused.entry(what.unwrap_or_else(|| "something".to_owned())).or_default() += count;
    }

    fn spend(&mut self, data: &Value) {
        let number = |key: &str| data.get(key).and_then(Value::as_u64).unwrap_or(0);
        self.calls += 1;
        self.tokens = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"]
            .map(number)
            .into_iter()
            .fold(self.tokens, u64::saturating_add);
        match data.get("cost_usd").and_then(Value::as_f64) {
            Some(cost) => self.cost_usd += cost,
            None => self.cost_unknown = true,
        }
    }

    /// What goes behind the stage while the run is under way: the tool in use, tokens and cost.
    pub(crate) fn now(&self) -> Option<String> {
        let tool = self.current_tool.as_deref().map(|tool| sanitize::short_line(tool, 40));
        let parts: Vec<String> = tool.into_iter().chain(self.cost()).collect();
        (!parts.is_empty()).then(|| parts.join(" · "))
    }

    /// Lines of the summary.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(words) = &self.last_words {
            lines.push(format!("the agent said: {}", sanitize::short_line(words.trim(), LAST_WORDS)));
        }
        if let Some(tools) = counted(&self.tools) {
            lines.push(format!("it used {tools}"));
        }
        if let Some(refused) = counted(&self.refused) {
            lines.push(format!("it was refused: {refused}"));
            lines.extend(remedies(&self.remedies));
        }
        lines.extend(self.cost().map(|cost| format!("it cost {cost}")));
        lines
    }

    fn cost(&self) -> Option<String> {
        let money = match (self.cost_unknown, self.cost_usd > 0.0) {
            (false, _) => format!("${:.4}", self.cost_usd),
            (true, true) => format!("at least ${:.4}", self.cost_usd),
            (true, false) => "an unknown amount".to_owned(),
        };
        let calls = if self.calls == 1 { "1 call".to_owned() } else { format!("{} calls", self.calls) };
        (self.calls > 0).then(|| format!("{money}, {} tokens, {calls}", self.tokens))
    }

    /// The sums for programs; `None` if no model was called.
    pub(crate) fn usage(&self) -> Option<Value> {
        let cost = (!self.cost_unknown).then_some(self.cost_usd);
        (self.calls > 0)
            .then(|| json!({ "model_calls": self.calls, "tokens": self.tokens, "cost_usd": cost }))
    }

    /// What was refused, with how often.
    pub(crate) fn refused(&self) -> &BTreeMap<String, u64> {
        &self.refused
    }
}

/// The broker also says what to type while the run is under way, which is too late here.
fn remedy(hint: &str) -> String {
    hint.split_once(" or type: ").map_or(hint, |(flag, _)| flag).to_owned()
}

fn remedies(all: &BTreeSet<String>) -> Option<String> {
    let shown: Vec<String> = all.iter().take(MOST_NAMES).map(|one| sanitize::short_line(one, 80)).collect();
    (!shown.is_empty()).then(|| format!("to let it: {}", shown.join(", ")))
}

fn counted(names: &BTreeMap<String, u64>) -> Option<String> {
    let mut sorted: Vec<(&String, &u64)> = names.iter().collect();
    sorted.sort_by(|one, other| other.1.cmp(one.1).then(one.0.cmp(other.0)));
    let shown: Vec<String> = sorted
        .iter()
        .take(MOST_NAMES)
        .map(|(name, count)| format!("{} ({count}×)", sanitize::short_line(name, 80)))
        .collect();
    let rest = sorted.len().saturating_sub(MOST_NAMES);
    match (shown.is_empty(), rest) {
        (true, _) => None,
        (false, 0) => Some(shown.join(", ")),
        (false, rest) => Some(format!("{} and {rest} more", shown.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event_type: EventType, data: Value) -> Event {
        Event { seq: 1, at_ms: 0, event_type, attempt: Some(1), data }
    }

    #[test]
    fn the_summary_says_what_it_did_what_it_was_refused_and_what_it_cost() {
        let mut tally = Tally::default();
        let hint = "add --allow evil.example:443 or type: cofferdam runs allow run_1 evil.example:443";
        let usage = json!({ "input_tokens": 100, "output_tokens": 20, "cost_usd": 0.0125 });
        for (event_type, data) in [
            (EventType::AgentSession, json!({ "session_id": "s" })),
            (EventType::AgentToolUse, json!({ "name": "Bash" })),
            (EventType::AgentToolUse, json!({ "name": "Bash" })),
            (EventType::AgentToolUse, json!({ "name": "Write" })),
            (EventType::EgressRefused, json!({ "target": "evil.example:443", "count": 3, "hint": hint })),
            (EventType::ModelRefused, json!({ "path": "/v1/files", "reason": "path", "count": 1 })),
            (EventType::ModelRefused, json!({ "path": "/v1/files", "reason": "path", "count": 2 })),
            (EventType::ModelUsage, usage.clone()),
            (EventType::ModelUsage, usage),
            (EventType::AgentMessage, json!({ "text": "All tests\npass \u{1b}[31mnow." })),
        ] {
            tally.note(&event(event_type, data));
        }
        insta::assert_snapshot!(tally.lines().join("\n"), @r"
        the agent said: All tests pass now.
        it used Bash (2×), Write (1×)
        it was refused: evil.example:443 (3×), /v1/files (2×)
        to let it: add --allow evil.example:443
        it cost $0.0250, 240 tokens, 2 calls
        ");
        assert_eq!(tally.usage().unwrap()["tokens"], 240);
    }

    #[test]
    fn a_price_that_is_not_known_is_not_made_up() {
        let mut tally = Tally::default();
        tally.note(&event(EventType::ModelUsage, json!({ "input_tokens": 1, "cost_usd": null })));
        assert_eq!(tally.lines(), ["it cost an unknown amount, 1 tokens, 1 call"]);
        assert_eq!(tally.usage().unwrap()["cost_usd"], Value::Null);
    }

    #[test]
    fn the_lines_of_a_plain_program_are_not_called_its_words() {
        let mut tally = Tally::default();
        tally.note(&event(EventType::AgentMessage, json!({ "text": "hello" })));
        assert!(tally.lines().is_empty());
    }
}
