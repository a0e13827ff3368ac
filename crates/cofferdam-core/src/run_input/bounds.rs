//! How much each field may hold. The check, the OpenAPI document and the schema of the settings take it from here.

use crate::quantity::MOST_PIDS;

/// The longest task. A body over HTTP has 1 MiB, and the command line posts what it is told to a service: what one way
/// takes, the other has to take, so that both have the same bound. Half a million characters of plain text are half of
/// such a body.
pub const LONGEST_TASK_CHARS: usize = 500_000;
/// The same in bytes, for scripts that need several for a character: it leaves 48,576 bytes of a body for the rest.
pub const LONGEST_TASK_BYTES: usize = 1_000_000;
/// The longest system prompt, which is one argument of an agent's CLI.
pub const LONGEST_SYSTEM_PROMPT_CHARS: usize = 100_000;
/// The same in bytes: Linux takes 131,072 for one argument, with its option's name in it.
pub const LONGEST_SYSTEM_PROMPT_BYTES: usize = 130_000;
/// The longest name of a model, in characters.
pub const LONGEST_MODEL: usize = 200;
/// The longest address or path of a repository, in characters.
pub const LONGEST_REPO: usize = 2_000;
/// The longest path of a mount, in bytes: Linux takes 4,096.
pub const LONGEST_MOUNT: usize = 4_000;
/// The longest pattern of file names, in characters.
pub const LONGEST_PATTERN: usize = 200;
/// Words of a program.
pub const MOST_COMMAND_WORDS: usize = 1_000;
/// Bytes of all of them: about what Linux takes for one program.
pub const MOST_COMMAND_BYTES: usize = 100 << 10;
/// The shortest time of one attempt: what is shorter ends before a sandbox is made.
pub const LEAST_TIMEOUT_MS: u64 = 1_000;
/// The longest: seven days.
pub const MOST_TIMEOUT_MS: u64 = 604_800_000;
/// The longest, in seconds, as the settings have it.
pub const MOST_TIMEOUT_SECONDS: u32 = 604_800;
/// Turns of the model.
pub const MOST_TURNS: u32 = 10_000;
/// Attempts of one run.
pub const MOST_ATTEMPTS: u32 = 100;
/// Tokens, and calls of the model.
pub const MOST_COUNTED: u32 = u32::MAX;
/// The least that can be spent: a millionth of a dollar.
pub const LEAST_COST_USD: f64 = 0.000_001;
/// The most that can be spent: a million dollars.
pub const MOST_COST_USD: f64 = 1_000_000.0;
/// How far a priority is from zero at most.
pub const MOST_PRIORITY: i8 = 100;
/// Entries of a list: rules, variables, mounts, patterns, tools.
pub const MOST_ENTRIES: usize = 100;
/// Turns that a model may take of which nobody says how many.
pub const ASK_MAX_TURNS: u32 = 10;
/// The longest answer of one turn, in tokens, where nobody says how long. What is reserved of a budget grows with it.
pub const ASK_MAX_OUTPUT_TOKENS: u32 = 16_000;
/// The longest that can be asked for: what the largest models give.
pub const MOST_OUTPUT_TOKENS: u32 = 128_000;
/// The fewest tokens to think with: the vendor takes no fewer.
pub const LEAST_THINKING_TOKENS: u32 = 1_024;
/// The longest schema of an answer.
pub const LONGEST_OUTPUT_SCHEMA_BYTES: usize = 100_000;
/// The most parts of it, where each reference counts as what it refers to.
pub const MOST_OUTPUT_SCHEMA_PARTS: usize = 10_000;
/// How deep its schemas may be in each other, references followed.
pub const MOST_OUTPUT_SCHEMA_DEPTH: usize = 64;
/// The longest title of a spec, in characters.
pub const LONGEST_SPEC_TITLE_CHARS: usize = 500;
/// The longest description of a spec, in characters: it is part of every prompt.
pub const LONGEST_SPEC_DESCRIPTION_CHARS: usize = 100_000;
/// The longest reason for a decision about a phase, in characters.
pub const LONGEST_REJECTION_CHARS: usize = 10_000;
/// Services on the sandbox's own loopback.
pub const MOST_FORWARDS: usize = 20;

/// What a field may hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A number between two others.
    Number {
        /// The least.
        least: f64,
        /// The most.
        most: f64,
    },
    /// A list of so many entries at most.
    Items(usize),
    /// A text of so many characters at most.
    Characters(usize),
}

/// The bounds of fields, by their name in JSON. What else is text has its bounds in [`crate::text_schema`].
pub const BOUNDS: [(&str, Bound); 21] = [
    ("command", Bound::Items(MOST_COMMAND_WORDS)),
    ("priority", number(-(MOST_PRIORITY as f64), MOST_PRIORITY as f64)),
    ("options.timeout_ms", number(LEAST_TIMEOUT_MS as f64, MOST_TIMEOUT_MS as f64)),
    ("options.max_turns", number(1.0, MOST_TURNS as f64)),
    ("options.max_attempts", number(1.0, MOST_ATTEMPTS as f64)),
    ("options.max_cost_usd", number(LEAST_COST_USD, MOST_COST_USD)),
    ("options.max_tokens", number(1.0, MOST_COUNTED as f64)),
    ("options.max_model_calls", number(1.0, MOST_COUNTED as f64)),
    ("options.pids", number(1.0, MOST_PIDS as f64)),
    ("options.system_prompt", Bound::Characters(LONGEST_SYSTEM_PROMPT_CHARS)),
    ("options.append_system_prompt", Bound::Characters(LONGEST_SYSTEM_PROMPT_CHARS)),
    ("options.allow", Bound::Items(MOST_ENTRIES)),
    ("options.forward", Bound::Items(MOST_FORWARDS)),
    ("options.vendor_tools", Bound::Items(MOST_ENTRIES)),
    ("options.allowed_tools", Bound::Items(MOST_ENTRIES)),
    ("options.disallowed_tools", Bound::Items(MOST_ENTRIES)),
    ("options.env", Bound::Items(MOST_ENTRIES)),
    ("options.mounts", Bound::Items(MOST_ENTRIES)),
    ("options.unmask", Bound::Items(MOST_ENTRIES)),
    ("task", Bound::Characters(LONGEST_TASK_CHARS)),
    ("repo", Bound::Characters(LONGEST_REPO)),
];

/// The bounds of what questions have besides.
pub const ASK_BOUNDS: [(&str, Bound); 2] = [
    ("prompt", Bound::Characters(LONGEST_TASK_CHARS)),
    ("options.max_output_tokens", number(1.0, MOST_OUTPUT_TOKENS as f64)),
];

const fn number(least: f64, most: f64) -> Bound {
    Bound::Number { least, most }
}

/// The bound of a field, if it has one.
#[must_use]
pub fn bound_of(field: &str) -> Option<Bound> {
    BOUNDS.iter().chain(&ASK_BOUNDS).find(|(name, _)| *name == field).map(|(_, bound)| *bound)
}
