//! The check on the host: each CLI is asked as its owner would ask it, in an empty folder, with its own login and with
//! no more of the environment than it finds keys, logins and its server by. What it prints for programs decides.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use cofferdam_agent::{HostAnswer, HostContext, HostFinding, HostQuestion, HostStep, HostWord, profile};
use cofferdam_core::{Agent, EventType, Network, Outcome, Policy, Work, with_causes};
use tokio::time::Instant;

use super::AuthCheck;
use super::one_run::{Seen, one_run};
use super::status::AuthWord;
use super::verdict::Verdict;
use crate::installation;
use crate::logins::LoginPlaces;
use crate::node::Node;

/// Variables by which programs of every kind find what they need outside. With those of the agents themselves, this is
/// all that a CLI gets of the environment.
const PASSED: [&str; 14] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
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
/// No file of logins is longer.
const LONGEST_LOGIN: u64 = 1 << 20;

/// A CLI that is asked.
struct Asked<'a> {
    node: &'a Node,
    check: &'a AuthCheck,
    program: &'a Path,
    deadline: Instant,
}

/// Tries it.
pub(super) async fn check(node: &Node, check: &AuthCheck) -> Verdict {
    let program = match installation::on_path(check.agent, &check.search(node)) {
        Ok(program) => program,
        Err(error) => {
            let message = format!("{}; {}", with_causes(&error), error.remedy());
            return Verdict::early(AuthWord::CliMissing, message);
        }
    };
    let asked = Asked { node, check, program: &program, deadline: Instant::now() + check.timeout() };
    let mut answers = Vec::new();
    loop {
        match asked.next(&answers) {
            HostStep::Known(HostFinding { word, message }) => return Verdict::late(word.into(), message),
            HostStep::Ask(question) => match asked.ask(question).await {
                Ok(answer) => answers.push(answer),
                Err(verdict) => return verdict,
            },
        }
    }
}

impl From<HostWord> for AuthWord {
    fn from(word: HostWord) -> Self {
        match word {
            HostWord::Ok => Self::Ok,
            HostWord::AuthRequired => Self::AuthRequired,
            HostWord::Unknown => Self::Unknown,
        }
    }
}

impl Asked<'_> {
    /// Whether the caller has set this variable.
    fn var(&self, name: &str) -> Option<String> {
        (self.node.env)(name).filter(|value| !value.is_empty())
    }

    /// What follows from the answers so far.
    fn next(&self, answers: &[HostAnswer]) -> HostStep {
        let context = HostContext {
            model: self.check.model.as_deref(),
            var: &|name| self.var(name),
            login: &|| self.login(),
        };
        (profile(self.check.agent).host_check.next)(&context, answers)
    }

    /// The content of the CLI's login file. Only the CLI's own facts look at it.
    fn login(&self) -> Option<String> {
        let folder = |name: &str| self.var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let places = LoginPlaces::of(self.node.caller.home.as_deref(), folder);
        let file = places.files(self.check.agent).iter().find(|path| path.is_file())?;
        let mut text = String::new();
        File::open(file).ok()?.take(LONGEST_LOGIN).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Starts the CLI with these arguments and variables, and waits for its end. Every process that it has started is
    /// ended with it. An error is the verdict, where that is clear already.
    async fn ask(&self, question: HostQuestion) -> Result<HostAnswer, Verdict> {
        let mut argv = vec!["/usr/bin/env".to_owned()];
        argv.extend(question.variables.iter().map(|(name, value)| format!("{name}={value}")));
        argv.push(self.program.display().to_string());
        argv.extend(question.arguments);
        let unknown =
            |why: String| Verdict::early(AuthWord::Unknown, format!("it could not be tried: {why}"));
        let policy = self.policy();
        let seen = one_run(self.node, Work::Program { argv }, policy, self.deadline).await;
        answer(seen.map_err(unknown)?, self.check)
    }

    fn policy(&self) -> Policy {
        let of_agents = Agent::ALL.into_iter().flat_map(|agent| profile(agent).host_check.variables);
        let passed: BTreeSet<&str> = PASSED.iter().chain(of_agents).copied().collect();
        let set = passed.into_iter().filter(|name| self.var(name).is_some());
        Policy {
            mode: self.check.policy.mode,
            network: Network::Open,
            limits: self.check.policy.limits.clone(),
            limits_rule: self.check.policy.limits_rule,
            env: set.map(str::to_owned).collect(),
            timeout_ms: u64::try_from(self.check.timeout().as_millis()).unwrap_or(u64::MAX),
            grace_ms: 0,
            ..Policy::default()
        }
    }
}

/// Reads what came of it.
fn answer(seen: Seen, check: &AuthCheck) -> Result<HostAnswer, Verdict> {
    /// What `env` exits with if it cannot start, or cannot find, a program.
    const NOT_STARTED: [i32; 2] = [126, 127];
    let started = seen.events.iter().any(|event| event.event_type == EventType::AgentStarted);
    let code = match seen.outcome {
        None => return Err(Verdict::timeout(started, check.timeout())),
        Some(Outcome::Succeeded) => Some(0),
        Some(Outcome::Failed { exit_code: Some(code), .. }) if NOT_STARTED.contains(&code) => {
            let message = format!("{} is on PATH and cannot be started", profile(check.agent).program);
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
    Ok(HostAnswer { code, stdout })
}
