//! One description of a run, as a caller writes it, and its validation: from [`RunInput`] and the settings to a
//! [`crate::RunRequest`]. The command line, the service and messages take the same way, so that one text means the same
//! in all of them.
//!
//! Whoever holds the request holds a valid one: nothing checks again. What is not decided here is whether its caller may
//! ask for it, beyond the paths that [`Context::may_name_path`] says may be looked at.

mod ask;
pub mod bounds;
mod check_policy;
mod choice;
mod egress;
mod env;
mod error;
mod forward;
mod input;
mod mount;
mod overrides;
mod policy;
mod read_only;
mod source;
mod surroundings;
mod syntax;
#[cfg(test)]
pub(crate) mod test_machine;
mod validate;
mod work;

pub use self::ask::{
    ASK_FIELDS, AskInput, AskOptions, OutputSchemaProblem, check_output_schema, validate_ask,
};
pub use self::check_policy::{agent_policy, check_policy};
pub use self::choice::{Asked, Choice, agent_names, choose_agent};
pub use self::egress::allow_rules;
pub use self::env::MODEL_KEYS;
pub use self::error::{InputError, InputErrorKind};
pub use self::input::{MountInput, RunInput, RunOptions};
pub use self::source::find_source;
pub use self::surroundings::{MayNamePath, PathUse, Surroundings, Variable};
pub use self::syntax::{FIELDS as INPUT_FIELDS, InputSyntax};
pub use self::validate::{Context, Placing, Validated, Workspace, validate};
pub(crate) use self::work::check_text;
