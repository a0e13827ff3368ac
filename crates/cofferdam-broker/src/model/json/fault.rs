//! Why a request cannot be read.

use super::super::decode;
use super::super::refusal::Refusal;

/// Why a request cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is not JSON, from this byte on.
    Syntax { what: &'static str, at: u64 },
    /// A field occurs twice; which, where that is known.
    Twice { name: Option<String> },
    /// It goes beyond what is read of anybody.
    Beyond(&'static str),
    /// It is, or becomes, larger than the broker takes.
    TooLarge { limit: u64 },
    /// It is not compressed in the way that it says.
    Encoding,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let message = match fault {
            Fault::Syntax { what, at } => format!("the request is not JSON: {what} at byte {at}"),
            Fault::Twice { name: Some(name) } => {
                let shown: String = name.chars().take(40).flat_map(char::escape_default).collect();
                format!("the request is not JSON: the field `{shown}` occurs twice")
            }
            Fault::Twice { name: None } => "the request is not JSON: a field occurs twice".to_owned(),
            Fault::Beyond(what) => {
                return Self::bad_request("too_complex", format!("the request is refused: {what}"));
            }
            Fault::TooLarge { limit } => {
                return decode::too_large(usize::try_from(limit).unwrap_or(usize::MAX));
            }
            Fault::Encoding => return decode::broken(),
        };
        Self::bad_request("json", message)
    }
}
