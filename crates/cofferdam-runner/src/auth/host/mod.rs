//! The check on the host: each CLI is asked as its owner would ask it, in an empty folder, with its own login and with
//! no more of the environment than it finds keys, logins and its server by. What it prints for programs decides.

mod claude;
mod codex;
mod opencode;

use std::path::Path;

use cofferdam_core::{Agent, EventType, Network, Outcome, Policy, Work, with_causes};
use tokio::time::Instant;

use super::AuthCheck;
use super::one_run::{Seen, one_run};
use super::status::AuthWord;
use super::verdict::Verdict;
use crate::installation;
use crate::node::Node;

/// Variables by which the CLIs find keys, logins and their servers. Everything else stays away from them.
const PASSED: [&str; 25] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CONFIG_DIR",
    "CODEX_API_KEY",
    "CODEX_HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENCODE_AUTH_CONTENT",
    "OPENCODE_CONFIG",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// A CLI that is asked.
pub(super) struct Asked<'a> {
    node: &'a Node,
    check: &'a AuthCheck,
    program: &'a Path,
    deadline: Instant,
}

/// What a CLI answered.
pub(super) struct Answer {
    /// Its exit status; `None` if a signal ended it.
    code: Option<i32>,
    /// Its stdout, line by line.
    stdout: Vec<String>,
}

/// Tries it.
pub(super) async fn check(node: &Node, check: &AuthCheck) -> Verdict {
    let program = match installation::on_path(check.cli, &check.search(node)) {
        Ok(program) => program,
        Err(error) => {
            let message = format!("{}; {}", with_causes(&error), error.remedy());
            return Verdict::early(AuthWord::CliMissing, message);
        }
    };
    let asked = Asked { node, check, program: &program, deadline: Instant::now() + check.timeout() };
    let verdict = match check.cli {
        Agent::ClaudeCode => claude::check(&asked).await,
        Agent::Codex => codex::check(&asked).await,
        Agent::OpenCode => opencode::check(&asked).await,
    };
    verdict.unwrap_or_else(|stop| stop)
}

impl Asked<'_> {
    /// Whether the caller has set this variable.
    fn var(&self, name: &str) -> Option<String> {
        (self.node.env)(name).filter(|value| !value.is_empty())
    }

    /// Starts the CLI with these arguments and variables, and waits for its end. Every process that it has started is
    /// ended with it. An error is the verdict, where that is clear already.
    async fn ask(&self, arguments: Vec<String>, variables: &[(&str, &str)]) -> Result<Answer, Verdict> {
        let mut argv = vec!["/usr/bin/env".to_owned()];
        argv.extend(variables.iter().map(|(name, value)| format!("{name}={value}")));
        argv.push(self.program.display().to_string());
        argv.extend(arguments);
        let unknown =
            |why: String| Verdict::early(AuthWord::Unknown, format!("it could not be tried: {why}"));
        let policy = self.policy();
        let seen = one_run(self.node, Work::Program { argv }, policy, self.deadline).await;
        answer(seen.map_err(unknown)?, self.check)
    }

    fn policy(&self) -> Policy {
        let set = PASSED.iter().filter(|name| self.var(name).is_some());
        Policy {
            mode: self.check.policy.mode,
            network: Network::Open,
            limits: self.check.policy.limits.clone(),
            limits_rule: self.check.policy.limits_rule,
            env: set.map(|&name| name.to_owned()).collect(),
            timeout_ms: u64::try_from(self.check.timeout().as_millis()).unwrap_or(u64::MAX),
            grace_ms: 0,
            ..Policy::default()
        }
    }
}

/// Reads what came of it.
fn answer(seen: Seen, check: &AuthCheck) -> Result<Answer, Verdict> {
    /// What `env` exits with if it cannot start, or cannot find, a program.
    const NOT_STARTED: [i32; 2] = [126, 127];
    let started = seen.events.iter().any(|event| event.event_type == EventType::AgentStarted);
    let code = match seen.outcome {
        None => return Err(Verdict::timeout(started, check.timeout())),
        Some(Outcome::Succeeded) => Some(0),
        Some(Outcome::Failed { exit_code: Some(code), .. }) if NOT_STARTED.contains(&code) => {
            let message = format!("{} is on PATH and cannot be started", check.cli.command());
            return Err(Verdict::early(AuthWord::CliMissing, message));
        }
        Some(Outcome::Failed { exit_code, message, .. }) => {
            if exit_code.is_none() {
                return Err(Verdict { word: AuthWord::Unknown, started, message });
            }
            exit_code
        }
        Some(Outcome::Cancelled | Outcome::TimedOut { .. }) => {
            return Err(Verdict::timeout(started, check.timeout()));
        }
    };
    let said = seen.events.iter().filter(|event| event.event_type == EventType::AgentMessage);
    let stdout = said.filter_map(|event| event.data.get("text")?.as_str().map(str::to_owned)).collect();
    Ok(Answer { code, stdout })
}

/// What was said that is none of the answers of a CLI that works.
fn senseless(cli: Agent, code: Option<i32>) -> Verdict {
    let how = code.map_or_else(|| "a signal".to_owned(), |code| format!("status {code}"));
    let message = format!("{} ended with {how} and without an answer that can be read", cli.command());
    Verdict::late(AuthWord::Unknown, message)
}

/// What a model's server says of a key or login that it does not take.
fn refuses_key(status: u64) -> bool {
    [401, 403].contains(&status)
}
