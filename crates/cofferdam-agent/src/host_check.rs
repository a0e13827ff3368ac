//! How an agent is asked whether it can work, outside of a sandbox: its own CLI is given a trivial prompt, and what it
//! prints for programs is read. Whoever starts the CLI is the runner.

/// What agents are asked: as little as can be.
pub const TRIVIAL_PROMPT: &str = "Reply with the word OK and nothing else. Use no tools.";

/// How an agent is checked on the host.
pub struct HostCheck {
    /// Variables by which its CLI finds keys, logins and its server.
    pub variables: &'static [&'static str],
    /// What follows from the answers so far.
    pub next: fn(&HostContext<'_>, &[HostAnswer]) -> HostStep,
}

/// What is known of whoever asks.
pub struct HostContext<'a> {
    /// The model, as the CLI names it.
    pub model: Option<&'a str>,
    /// A variable of the caller's that is not empty.
    pub var: &'a dyn Fn(&str) -> Option<String>,
    /// The content of the CLI's login file.
    pub login: &'a dyn Fn() -> Option<String>,
}

/// What is done next.
#[derive(Debug)]
pub enum HostStep {
    /// The CLI is started once more.
    Ask(HostQuestion),
    /// It is known.
    Known(HostFinding),
}

/// How a CLI is started for a check.
#[derive(Debug)]
pub struct HostQuestion {
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables over those of the caller.
    pub variables: Vec<(&'static str, String)>,
}

/// What a CLI answered.
#[derive(Debug)]
pub struct HostAnswer {
    /// Its exit status; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its stdout, line by line.
    pub stdout: Vec<String>,
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostFinding {
    /// In one word.
    pub word: HostWord,
    /// The same for people, with what to type.
    pub message: String,
}

/// What a check found, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostWord {
    /// A model answered.
    Ok,
    /// There is neither a key nor a login, or the model's server refused it.
    AuthRequired,
    /// Anything else.
    Unknown,
}

impl HostStep {
    pub(crate) fn ask(arguments: Vec<String>, variables: &[(&'static str, &str)]) -> Self {
        let variables = variables.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self::Ask(HostQuestion { arguments, variables })
    }
}

impl HostFinding {
    pub(crate) fn new(word: HostWord, message: impl Into<String>) -> Self {
        Self { word, message: message.into() }
    }

    /// What was said is none of the answers of a CLI that works.
    pub(crate) fn no_answer(program: &str, code: Option<i32>) -> Self {
        let how = code.map_or_else(|| "a signal".to_owned(), |code| format!("status {code}"));
        let message = format!("{program} ended with {how} and without an answer that can be read");
        Self::new(HostWord::Unknown, message)
    }
}

/// An address of a model's server, with the version that clients of OpenAI's interface expect in it.
pub(crate) fn with_version(address: &str) -> String {
    let address = address.trim_end_matches('/');
    if address.ends_with("/v1") { address.to_owned() } else { format!("{address}/v1") }
}

/// What a model's server says of a key or login that it does not take.
pub(crate) fn refuses_key(status: u64) -> bool {
    [401, 403].contains(&status)
}
