//! The seam between the worker and the agent CLIs.

use std::collections::BTreeMap;

use cofferdam_core::{AgentReport, AttemptRef, EventType, KeptSession, Login, MessageKind, Vendor, Work};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::command::CommandAdapter;
use crate::json_lines::LONGEST_LINE;
use crate::profile::profile;

/// One agent CLI, set up for one attempt: a state machine that is fed with lines and messages, and says
/// what they mean and what to write to the CLI.
pub trait Adapter {
    /// How the CLI is started.
    fn command(&self, context: &Context<'_>) -> Command;

    /// The longest line that [`Self::parse`] is given. What is longer is not for it to understand.
    fn longest_line(&self) -> usize {
        LONGEST_LINE
    }

    /// The CLI runs: what it is told first.
    fn begin(&mut self, _context: &Context<'_>) -> Step {
        Step::default()
    }

    /// What one line of output, without its newline, means.
    fn parse(&mut self, stream: Stream, line: &[u8]) -> Step;

    /// A message for the agent. Its receipt follows at once or in a later step: `delivered` only when the
    /// CLI has shown that it took the message.
    fn send(&mut self, message: Message) -> Step {
        Step::receipt(Receipt::Refused { id: message.id, reason: "not_supported" })
    }

    /// Whether the agent has nothing left to do: its turn is over and no message waits. Whoever feeds it may
    /// then close its stdin.
    fn is_idle(&self) -> bool {
        false
    }

    /// The agent is gone: the receipts of what it never took.
    fn abandon(&mut self) -> Vec<Receipt> {
        Vec::new()
    }

    /// Whether the CLI ended because the session that it was to go on with is not there or damaged. Nothing was done
    /// then, and it can be started again without one.
    fn could_not_resume(&self) -> bool {
        false
    }

    /// What the CLI says of its last turn; `None` for a program that says no such thing.
    fn report(&self) -> Option<AgentReport> {
        None
    }
}

/// What reads and feeds the process of this work.
#[must_use]
pub fn for_work(work: &Work) -> Box<dyn Adapter + Send> {
    match work {
        Work::Program { argv } => Box::new(CommandAdapter::new(argv.clone())),
        // No one process does it, and no worker is given it: a program without a name is none that could be started.
        Work::Direct(_) | Work::Spec(_) => Box::new(CommandAdapter::new(Vec::new())),
        Work::Agent { agent, setup } => (profile(*agent).adapter)(setup.clone()),
    }
}

/// What an agent is started in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Context<'a> {
    /// The CLI's own program inside, and its script if that is an interpreter; empty for its usual name on the
    /// `PATH`.
    pub program: &'a [String],
    /// The way to the model; without one the CLI finds its own.
    pub model_route: Option<ModelRoute<'a>>,
    /// Where the agent works.
    pub working_directory: &'a str,
    /// Which attempt this is. Ids that are derived from it are unique: Claude Code silently drops a message
    /// whose id its session already knows.
    pub attempt: &'a AttemptRef,
    /// Whether it runs as the user 0.
    pub is_root: bool,
    /// The conversation that goes on from run to run, if it is one.
    pub session: Option<&'a KeptSession>,
}

impl Context<'_> {
    /// The session that goes on.
    pub(crate) fn resume(&self) -> Option<&str> {
        self.session.and_then(|session| session.resume.as_deref())
    }

    /// A folder of the CLI's own that is kept, as a link to put in its place.
    pub(crate) fn keep(&self, variable: &'static str, usual: &'static str, name: &'static str) -> Vec<Link> {
        let link = |session: &KeptSession| Link {
            variable,
            usual,
            name,
            target: format!("{}/{}/{name}", session.folder, usual.trim_start_matches('.')),
        };
        self.session.map(link).into_iter().collect()
    }

    /// The beginning of the CLI's command line.
    pub(crate) fn program(&self, usual: &str) -> Vec<String> {
        if self.program.is_empty() { vec![usual.to_owned()] } else { self.program.to_vec() }
    }
}

/// The way to the model through the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelRoute<'a> {
    /// The gateway, such as `http://127.0.0.1:3128`.
    pub gateway_url: &'a str,
    /// What stands in for the key.
    pub placeholder: &'a str,
    /// Whose model it is, where a CLI can talk to several.
    pub vendor: Option<Vendor>,
    /// What the CLI is to think that it has.
    pub login: &'a Login,
}

/// How an agent is started. There is no shell in between, so nothing in it needs quoting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Variables that the CLI needs, over those of the job.
    pub env: BTreeMap<String, String>,
    /// What its home has to have before it starts.
    pub files: Vec<HomeFile>,
    /// Where its stdin comes from.
    pub stdin: Stdin,
    /// What is linked into the CLI's folders before it starts.
    pub links: Vec<Link>,
}

/// A folder of a CLI's that is somewhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The variable that says where the CLI's files are.
    pub variable: &'static str,
    /// Where they are without it, below the home.
    pub usual: &'static str,
    /// The folder among them.
    pub name: &'static str,
    /// Where it really is; made if it is not there.
    pub target: String,
}

/// A file that a CLI looks for in a folder of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeFile {
    /// The variable that names the folder.
    pub variable: &'static str,
    /// The folder below the home, where the variable is not set.
    pub folder: &'static str,
    /// The path in that folder.
    pub name: &'static str,
    /// The content. No secret is in it.
    pub content: String,
}

/// Where an agent's stdin comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// It reads end-of-file at once.
    Null,
    /// It reads the lines of each [`Step`], and end-of-file once it is idle.
    Lines,
}

/// Which of its two outputs the agent wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// What follows from a line or a message.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Step {
    /// Facts, in order.
    pub facts: Vec<Parsed>,
    /// Whether the line was not understood and is to be kept as a [`EventType::Log`], so that nothing which
    /// the agent said is lost when its CLI learns a new kind of line.
    pub keep_line: bool,
    /// Lines for the CLI's stdin, without their newlines.
    pub lines: Vec<String>,
    /// What became of messages.
    pub receipts: Vec<Receipt>,
}

impl Step {
    /// A line that is not understood.
    #[must_use]
    pub fn unknown() -> Self {
        Self { keep_line: true, ..Self::default() }
    }

    /// A fact alone.
    #[must_use]
    pub fn fact(fact: Parsed) -> Self {
        Self { facts: vec![fact], ..Self::default() }
    }

    /// A receipt alone.
    #[must_use]
    pub fn receipt(receipt: Receipt) -> Self {
        Self { receipts: vec![receipt], ..Self::default() }
    }
}

/// A fact that a line of output states.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// What kind of fact.
    pub event_type: EventType,
    /// The fact; always a JSON object, so that the worker can add marks of its own.
    pub data: Value,
}

/// Something that is said to a running agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The receipt's id.
    pub id: String,
    /// What it does.
    pub kind: MessageKind,
    /// What is said; for an interrupt what the agent is to do instead, and possibly nothing.
    pub content: String,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Receipt {
    /// The CLI has shown that it took it.
    Delivered {
        /// Whose receipt this is.
        id: String,
        /// What it was taken as: a `steer` that comes when the turn is over is a `follow_up`.
        taken_as: MessageKind,
    },
    /// The agent will never see it.
    Refused {
        /// Whose receipt this is.
        id: String,
        /// Why: one of a few fixed words.
        reason: &'static str,
    },
}
