//! `cofferdam auth status`: whether agents could work now, found out by trying.

use std::time::Duration;

use clap::Args;
use cofferdam_core::{Effective, Environment, LimitsRule, Mode, Policy, SandboxSettings};
use cofferdam_runner::Node;
use cofferdam_runner::auth::{AuthCache, AuthCheck, AuthStatus, AuthWord, depends_on};

use super::there;
use crate::caller::Caller;
use crate::commands::run::policy_of;
use crate::exit::ExitCode;
use crate::failure::{Failure, UsageError};
use crate::known_agents::{KnownAgent, known_agents, named, repository_around};
use crate::node::BrokerSetup;
use crate::secrets::{CallerSecrets, login_places};
use crate::server::ServerFlag;
use crate::{node, sanitize, settings, terminal, units};

/// Try whether agents are there and logged in, on the host or in a fresh sandbox
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct StatusArgs {
    /// Where to try [default: where the agent's runs are]
    #[arg(long, value_name = "host|sandbox")]
    environment: Option<String>,
    /// An agent of the settings, or claude_code, codex, opencode (repeatable) [default: all]
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
    /// Try again, even if the answer is not a minute old
    #[arg(long)]
    fresh: bool,
    /// How long each try may take, such as 5s [default: 15s on the host, 20s in a sandbox]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Whose node tries it
    #[command(flatten)]
    server: ServerFlag,
}

const AFTER_HELP: &str = "\
A try is a model call with a trivial prompt. Its answer is kept for a minute.

Exit codes:
   0  every agent that was asked for is authenticated
   2  usage error: no such agent or environment
   3  at least one is not, or that is not known";

/// Asks every agent in turn: several at once would take each other's time.
pub(crate) async fn run(args: &StatusArgs, caller: &Caller) -> Result<ExitCode, Failure> {
    let environment = args.environment.as_deref().map(environment_from).transpose()?;
    if let Some(called) = args.server.called(caller)? {
        if args.fresh || args.timeout.is_some() {
            let problem = "conflicting options: --server with --fresh or --timeout";
            return Err(UsageError::new(
                problem,
                "leave those out: a service shares one answer for a minute",
            )
            .into());
        }
        let found = there::ask(&called.client, environment, &args.agent).await?;
        return show(&found, args.json);
    }
    let timeout = args.timeout.as_deref().map(|text| units::duration("--timeout", text)).transpose()?;
    let loaded = settings::load(caller, &settings::local_folder(caller))?;
    loaded.warn();
    let settings = loaded.effective;
    let known = known_agents(&settings)?;
    let asked = match args.agent.as_slice() {
        [] => known,
        names => names.iter().map(|name| named(&known, name)).collect::<Result<_, _>>()?,
    };
    let home = caller.open_state()?;
    let cache = AuthCache::of(&home);
    let mut node = None;
    let mut found = Vec::new();
    for agent in &asked {
        let mut trying =
            Trying { caller, settings: &settings, home: &home, cache: &cache, timeout, node: &mut node };
        found.push(trying.one(agent, environment, args.fresh).await?);
    }
    show(&found, args.json)
}

fn show(found: &[AuthStatus], json: bool) -> Result<ExitCode, Failure> {
    if json {
        let value = serde_json::to_value(found);
        terminal::write_json(
            &value.map_err(|error| Failure::internal("the answer has no JSON form", &error))?,
        )?;
    } else {
        terminal::write_stdout(table(found).as_bytes())?;
    }
    let all = found.iter().all(|status| status.authenticated);
    Ok(if all { ExitCode::Succeeded } else { ExitCode::Refused })
}

fn environment_from(text: &str) -> Result<Environment, UsageError> {
    text.parse().map_err(|error| {
        UsageError::new(
            format!("--environment: {error}"),
            "type `--environment host` or `--environment sandbox`",
        )
    })
}

/// What tries share.
struct Trying<'a> {
    caller: &'a Caller,
    settings: &'a Effective,
    home: &'a cofferdam_runner::Home,
    cache: &'a AuthCache,
    timeout: Option<Duration>,
    /// This process as a node, once something has to be tried.
    node: &'a mut Option<Node>,
}

impl Trying<'_> {
    async fn one(
        &mut self,
        agent: &KnownAgent,
        environment: Option<Environment>,
        fresh: bool,
    ) -> Result<AuthStatus, Failure> {
        let mode = mode_of(agent, environment);
        let check = AuthCheck {
            name: agent.name.clone(),
            agent: agent.agent,
            model: agent.model().map(str::to_owned),
            policy: self.policy(agent, mode)?,
            exclude: repository_around(&self.caller.current_folder),
            timeout: self.timeout,
        };
        if let Some(message) = self.bad_variable(mode)? {
            return Ok(check.refused(AuthWord::ImageInvalid, &message));
        }
        let parts = depends_on(&check, &self.caller.env, &login_places(self.caller));
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        if let Some(known) = (!fresh).then(|| self.cache.recall(&parts)).flatten() {
            return Ok(known);
        }
        if terminal::stderr_is_terminal() {
            terminal::write_stderr(&format!("cofferdam: trying {} ({mode})\n", agent.name));
        }
        let status = check.run(self.node().await?).await;
        if let Err(error) = self.cache.keep(&parts, &status) {
            tracing::warn!(%error, "the answer of a check could not be kept");
        }
        Ok(status)
    }

    /// The policy of the agent's runs. On the host a CLI is asked as its owner would ask it, whatever runs may do.
    fn policy(&self, agent: &KnownAgent, mode: Mode) -> Result<Policy, Failure> {
        match mode {
            Mode::Host => Ok(Policy { mode, limits_rule: LimitsRule::BestEffort, ..Policy::default() }),
            Mode::Native | Mode::Docker | Mode::Apple => {
                Ok(policy_of(&agent.name, Some(mode), self.caller, self.settings)?.0)
            }
        }
    }

    /// Why the image that a variable names is none.
    fn bad_variable(&self, mode: Mode) -> Result<Option<String>, Failure> {
        if mode != Mode::Docker {
            return Ok(None);
        }
        match settings::docker(self.caller, &self.settings.settings) {
            Ok(_) => Ok(None),
            Err(failure) if failure.message().contains("SANDBOX_DOCKER_IMAGE") => {
                Ok(Some(failure.message().to_owned()))
            }
            Err(failure) => Err(failure),
        }
    }

    async fn node(&mut self) -> Result<&Node, Failure> {
        if self.node.is_none() {
            let secrets = CallerSecrets::of(self.caller)?;
            let mut settings = self.settings.settings.clone();
            // Somebody waits for the answer, and a check that waits for a slot would say that the agent is slow.
            settings.sandbox.max_concurrency = SandboxSettings::default().max_concurrency;
            let setup = BrokerSetup { secrets, settings };
            *self.node = Some(node::register(self.home, self.caller, setup).await?);
        }
        Ok(self.node.as_ref().expect("it was made just now"))
    }
}

/// The agent's own mode, or the one that comes nearest to what was asked for.
fn mode_of(agent: &KnownAgent, environment: Option<Environment>) -> Mode {
    match environment {
        None => agent.mode,
        Some(Environment::Host) => Mode::Host,
        Some(Environment::Sandbox) if agent.mode.is_sandboxed() => agent.mode,
        Some(Environment::Sandbox) => Mode::Docker,
    }
}

fn table(found: &[AuthStatus]) -> String {
    let name = |status: &AuthStatus| sanitize::short_line(&status.agent, 40);
    let widest = found.iter().map(|status| name(status).chars().count()).chain([5]).max().unwrap_or(5);
    let mut text =
        format!("{:<widest$}  {:<7}  {:<6}  {:<18}  MESSAGE\n", "AGENT", "WHERE", "MODE", "STATUS");
    for status in found {
        text.push_str(&format!(
            "{:<widest$}  {:<7}  {:<6}  {:<18}  {}\n",
            name(status),
            status.execution_environment.as_str(),
            status.mode.to_string(),
            status.status.as_str(),
            sanitize::line(&status.message)
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_environment_says_what_to_type() {
        let failure = Failure::from(environment_from("docker").unwrap_err());
        assert_eq!(failure.code(), ExitCode::Usage);
        assert!(failure.message().contains("`docker`"), "{}", failure.message());
        assert!(failure.remedy().is_some_and(|hint| hint.contains("--environment sandbox")));
    }

    #[test]
    fn the_table_has_a_clean_line_for_each_agent() {
        let status = AuthStatus {
            agent: "coder".to_owned(),
            available: true,
            authenticated: false,
            checked_at: String::new(),
            execution_environment: Environment::Sandbox,
            mode: Mode::Docker,
            status: AuthWord::AuthRequired,
            message: "a\u{1b}[2J\nb".to_owned(),
        };
        insta::assert_snapshot!(table(&[status]), @r"
        AGENT  WHERE    MODE    STATUS              MESSAGE
        coder  sandbox  docker  auth_required       a b
        ");
    }
}
