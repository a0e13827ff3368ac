//! What is known of the caller's variables.

use std::ffi::OsStr;

use cofferdam_core::Variable;

use crate::caller::Caller;
use crate::failure::UsageError;

/// Whether a variable is set here.
pub(super) fn variable(name: &str, caller: &Caller) -> Variable {
    match caller.env.get(OsStr::new(name)).map(|value| value.to_str()) {
        Some(Some(_)) => Variable::Set,
        Some(None) => Variable::NotText,
        None => Variable::Unset,
    }
}

/// Refuses a run of before whose variables are not all set here.
pub(crate) fn check_is_set(name: &str, caller: &Caller) -> Result<(), UsageError> {
    match variable(name, caller) {
        Variable::Set | Variable::Unknown => Ok(()),
        Variable::NotText => Err(UsageError::new(
            format!("the value of {name} is not valid UTF-8"),
            format!("export {name} with a value that is"),
        )),
        Variable::Unset => Err(UsageError::new(
            format!("--env: no variable {name} is set here"),
            format!("type `export {name}=…` first"),
        )),
    }
}
