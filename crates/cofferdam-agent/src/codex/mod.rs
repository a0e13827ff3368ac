//! Codex: its app server, JSON-RPC on stdin and stdout.
//!
//! The answer to `turn/steer` says that the text was queued, not that it was taken: an interrupt or the end of
//! the turn loses it. What was taken comes back as a `userMessage` item with the id that we gave it.

mod command;
mod credentials;
mod host_check;
mod items;
mod login;
mod parse;
mod permissions;
mod turns;

use cofferdam_core::{
    AgentReport, Credential, Login, MessageReceipt, PermissionMode, PromptSetup, Support, Vendor,
};

use crate::adapter::{Adapter, Command, Context, Message, Step, Stream};
use crate::facts;
use crate::host_check::HostCheck;
use crate::installed::{Bundle, Installed, Machine};
use crate::json_lines::unfinished;
use crate::login::{KeyOrder, LoginFacts, LoginFile, OwnKey};
use crate::profile::Profile;
use turns::Turns;

pub(crate) static PROFILE: Profile = Profile {
    title: "Codex",
    program: "codex",
    package: "@openai/codex",
    vendors: |_| &[Vendor::Openai],
    support: Support { own_modes: &[PermissionMode::DangerFullAccess], tool_lists: false, max_turns: false },
    folders: &[("CODEX_HOME", "codex")],
    own_key: Some(OwnKey {
        variable: "CODEX_API_KEY",
        vendor: Vendor::Openai,
        order: KeyOrder::BeforeVendorKey,
        // As Codex reads it: without the spaces around it, and not at all if nothing is left.
        read: |key| Some(key.trim().to_owned()).filter(|key| !key.is_empty()).map(Credential::ApiKey),
        login: Login::Key,
    }),
    login: LoginFacts {
        files: &[LoginFile {
            variables: &["CODEX_AUTH_DIR", "CODEX_HOME"],
            folder: ".codex",
            name: "auth.json",
        }],
        parse: credentials::parse,
        log_in: "type `codex login`, or `export OPENAI_API_KEY=…`; it stays outside the sandbox",
        renew: "type `codex exec hi` once, which renews it, and try again",
        lasting: "for runs without you: `export OPENAI_API_KEY=…`, which does not expire",
        finding: "codex_login",
    },
    installed: Installed {
        usual_places: &[".local/bin/codex", ".npm-global/bin/codex", ".cargo/bin/codex"],
        platform_packages: |machine| machine.packages("@openai/codex", &[""]),
        programs,
        // It came in one package for all platforms once.
        own_programs: |machine| {
            let single = format!("bin/codex-{}", machine.triple);
            programs(machine).into_iter().chain([single]).collect()
        },
        may_be_script: false,
        bundle: Some(Bundle {
            program_folders: &["bin", "codex"],
            marks: &["codex-path", "codex-resources"],
            path_entries: &["codex-path", "path"],
        }),
    },
    host_check: HostCheck {
        variables: &["CODEX_API_KEY", "CODEX_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL"],
        next: host_check::next,
    },
    adapter: |setup| Box::new(Codex { setup, ..Codex::default() }),
};

/// Where its program may be in a package, by the target triple.
fn programs(machine: &Machine) -> Vec<String> {
    ["bin/codex", "codex/codex"].map(|program| format!("vendor/{}/{program}", machine.triple)).into()
}

#[derive(Default)]
pub(crate) struct Codex {
    setup: PromptSetup,
    working_directory: String,
    /// The thread that is to go on.
    resume: Option<String>,
    turns: Turns,
    /// What the agent said last in this turn.
    last_message: String,
    report: Option<AgentReport>,
}

impl Adapter for Codex {
    fn command(&self, context: &Context<'_>) -> Command {
        command::command(&self.setup, context)
    }

    fn begin(&mut self, context: &Context<'_>) -> Step {
        context.working_directory.clone_into(&mut self.working_directory);
        self.resume = context.resume().map(str::to_owned);
        let mut step = self.turns.begin();
        if self.setup.max_turns.is_some() {
            step.facts.push(facts::log("Codex counts no turns: the limit on turns is not in force"));
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
