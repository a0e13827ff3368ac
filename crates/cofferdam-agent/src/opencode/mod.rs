//! OpenCode: the Agent Client Protocol (`opencode acp`), JSON-RPC on stdin and stdout.
//!
//! A second prompt during a turn would be taken, but the protocol does not say when or whether: so nothing is
//! said to a busy agent, and a follow-up waits here for the end of the turn.

mod command;
mod credentials;
mod host_check;
mod models;
mod parse;
mod permissions;
mod tools;
mod turns;

use cofferdam_core::{AgentReport, MessageReceipt, PermissionMode, PromptSetup, Support};

use crate::adapter::{Adapter, Command, Context, Message, Step, Stream};
use crate::facts;
use crate::host_check::HostCheck;
use crate::installed::Installed;
use crate::json_lines::unfinished;
use crate::login::{LoginFacts, LoginFile};
use crate::profile::Profile;
use parse::Chunks;
use tools::Tools;
use turns::Turns;

pub(crate) static PROFILE: Profile = Profile {
    title: "OpenCode",
    program: "opencode",
    package: "opencode-ai",
    vendors: models::vendors,
    support: Support { own_modes: &[PermissionMode::Plan], tool_lists: true, max_turns: false },
    // It installs a package of its own at every start, through npm's cache in the home.
    folders: &[("npm_config_cache", "npm")],
    own_key: None,
    login: LoginFacts {
        files: &[LoginFile {
            variables: &["XDG_DATA_HOME"],
            folder: ".local/share",
            name: "opencode/auth.json",
        }],
        parse: credentials::parse,
        log_in: "type `export ANTHROPIC_API_KEY=…` or `export OPENAI_API_KEY=…`, or `opencode auth login` with a \
                 key; it stays outside the sandbox",
        renew: "type `opencode auth login`",
        lasting: "for runs without you: `export ANTHROPIC_API_KEY=…` or `export OPENAI_API_KEY=…`",
        finding: "opencode_login",
    },
    installed: Installed {
        usual_places: &[".opencode/bin/opencode", ".local/bin/opencode", ".npm-global/bin/opencode"],
        // The plain build of x86-64 needs AVX2 and dies of an illegal instruction without it.
        platform_packages: |machine| match machine.has_avx2 {
            true => machine.packages("opencode", &["", "-baseline", "-musl", "-baseline-musl"]),
            false => machine.packages("opencode", &["-baseline", "-baseline-musl"]),
        },
        programs: |_| vec!["bin/opencode".to_owned()],
        own_programs: |_| Vec::new(),
        may_be_script: false,
        bundle: None,
    },
    host_check: HostCheck {
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_BASE_URL",
            "OPENAI_API_KEY",
            "OPENAI_BASE_URL",
            "OPENCODE_AUTH_CONTENT",
            "OPENCODE_CONFIG",
        ],
        next: host_check::next,
    },
    adapter: |setup| Box::new(OpenCode { setup, ..OpenCode::default() }),
};

/// Each of these would call a host that a sealed sandbox does not reach, and that a check has nothing to do with.
const WITHOUT_CALLS_HOME: [(&str, &str); 5] = [
    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
    ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
    ("OPENCODE_DISABLE_SHARE", "1"),
];

#[derive(Default)]
pub(crate) struct OpenCode {
    setup: PromptSetup,
    working_directory: String,
    /// The session that is to go on.
    resume: Option<String>,
    turns: Turns,
    chunks: Chunks,
    tools: Tools,
    /// What the agent said last in this turn.
    last_message: String,
    /// What the session has cost, as the CLI counts it.
    cost_usd: Option<f64>,
    report: Option<AgentReport>,
}

impl Adapter for OpenCode {
    fn command(&self, context: &Context<'_>) -> Command {
        command::command(&self.setup, context)
    }

    fn begin(&mut self, context: &Context<'_>) -> Step {
        context.working_directory.clone_into(&mut self.working_directory);
        self.resume = context.resume().map(str::to_owned);
        let mut step = self.turns.begin();
        if self.setup.max_turns.is_some() {
            step.facts
                .push(facts::log("OpenCode holds no limit on turns: the one asked for is not in force"));
        }
        step
    }

    fn parse(&mut self, stream: Stream, line: &[u8]) -> Step {
        self.understand(stream, line)
    }

    fn send(&mut self, message: Message) -> Step {
        self.turns.send(message)
    }

    fn is_idle(&self) -> bool {
        self.turns.is_idle()
    }

    fn abandon(&mut self) -> Vec<MessageReceipt> {
        self.turns.abandon()
    }

    fn report(&self) -> Option<AgentReport> {
        Some(self.report.clone().unwrap_or_else(|| unfinished(PROFILE.title)))
    }
}
