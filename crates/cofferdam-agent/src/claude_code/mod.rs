//! Claude Code: JSON lines both ways (`--input-format stream-json`).
//!
//! A user message that is written while the agent works enters its next request to the model; one that is
//! written when a turn has just ended starts the next turn. With `--replay-user-messages` the CLI repeats
//! each message at the moment it takes it, under the id that we gave it: that is the receipt.

mod command;
mod credentials;
mod host_check;
mod login;
mod messages;
mod parse;
mod permissions;

use cofferdam_core::{
    AgentReport, Credential, Login, MessageReceipt, PermissionMode, PromptSetup, Support, Vendor,
};

use crate::adapter::{Adapter, Command, Context, Message, Step, Stream};
use crate::host_check::HostCheck;
use crate::installed::Installed;
use crate::json_lines::unfinished;
use crate::login::{KeyOrder, LoginFacts, LoginFile, OwnKey};
use crate::profile::Profile;
use messages::Messages;

pub(crate) static PROFILE: Profile = Profile {
    title: "Claude Code",
    program: "claude",
    package: "@anthropic-ai/claude-code",
    vendors: |_| &[Vendor::Anthropic],
    support: Support {
        own_modes: &[
            PermissionMode::Default,
            PermissionMode::DontAsk,
            PermissionMode::Plan,
            PermissionMode::BypassPermissions,
        ],
        tool_lists: true,
        max_turns: true,
    },
    folders: &[("CLAUDE_CONFIG_DIR", "claude")],
    // The long-lived token of `claude setup-token`: a subscription is for the CLI that it comes with.
    own_key: Some(OwnKey {
        variable: "CLAUDE_CODE_OAUTH_TOKEN",
        vendor: Vendor::Anthropic,
        order: KeyOrder::AfterVendorKey,
        read: |token| Some(Credential::Bearer(token)),
        login: Login::ClaudeAi { subscription: None, rate_limit_tier: None },
    }),
    login: LoginFacts {
        // The CLI itself takes its CLAUDE_CONFIG_DIR for all of `~/.claude`, so that folder counts for both.
        files: &[
            LoginFile {
                variables: &["CLAUDE_AUTH_DIR", "CLAUDE_CONFIG_DIR"],
                folder: ".claude",
                name: ".credentials.json",
            },
            LoginFile {
                variables: &["CLAUDE_CONFIG_DIR"],
                folder: ".config/claude",
                name: ".credentials.json",
            },
        ],
        parse: credentials::parse,
        log_in: "type `claude` and log in, or `export ANTHROPIC_API_KEY=…`, or `claude setup-token` and \
                 `export CLAUDE_CODE_OAUTH_TOKEN=…`; it stays outside the sandbox",
        renew: "type `claude -p hi` once, which renews it, and try again",
        lasting: "for runs without you: `claude setup-token`, then `export CLAUDE_CODE_OAUTH_TOKEN=…`, which \
                  lasts a year",
        finding: "claude_code_login",
    },
    installed: Installed {
        usual_places: &[".local/bin/claude", ".claude/local/claude", ".npm-global/bin/claude"],
        platform_packages: |machine| machine.packages("@anthropic-ai/claude-code", &["", "-musl"]),
        programs: |_| vec!["claude".to_owned()],
        own_programs: |_| Vec::new(),
        // It was a script until it became a program.
        may_be_script: true,
        bundle: None,
    },
    host_check: HostCheck {
        variables: &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "ANTHROPIC_BASE_URL",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CONFIG_DIR",
        ],
        next: host_check::next,
    },
    adapter: |setup| Box::new(ClaudeCode { setup, ..ClaudeCode::default() }),
};

#[derive(Default)]
pub(crate) struct ClaudeCode {
    setup: PromptSetup,
    messages: Messages,
    session_id: Option<String>,
    /// The session that is to go on.
    resume: Option<String>,
    could_not_resume: bool,
    report: Option<AgentReport>,
}

impl Adapter for ClaudeCode {
    fn command(&self, context: &Context<'_>) -> Command {
        command::command(&self.setup, context)
    }

    fn begin(&mut self, context: &Context<'_>) -> Step {
        self.resume = context.resume().map(str::to_owned);
        self.messages.begin(context.attempt, &self.setup.prompt)
    }

    fn parse(&mut self, stream: Stream, line: &[u8]) -> Step {
        self.understand(stream, line)
    }

    fn send(&mut self, message: Message) -> Step {
        self.messages.send(message)
    }

    fn is_idle(&self) -> bool {
        self.messages.is_idle()
    }

    fn abandon(&mut self) -> Vec<MessageReceipt> {
        self.messages.abandon()
    }

    fn could_not_resume(&self) -> bool {
        self.could_not_resume
    }

    fn report(&self) -> Option<AgentReport> {
        Some(self.report.clone().unwrap_or_else(|| unfinished(PROFILE.title)))
    }
}
