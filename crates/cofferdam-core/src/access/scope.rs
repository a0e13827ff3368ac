//! What the holder of an API key may do.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::text::named;
use crate::value::ValueError;

/// One thing that a key opens. `system` implies the others, and `run` implies reading one's own runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::Display, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case", parse_err_ty = ValueError, parse_err_fn = not_a_scope)]
pub enum Scope {
    /// See runs, events, diffs: those of every owner, or its own owner's alone, as `service.visibility` says.
    Read,
    /// Make runs, and read, steer, cancel and retry those of its own owner, within what the operator allows.
    Run,
    /// Everything: what reaches beyond a sealed sandbox (`host`, `open`, environment, mounts, paths), runs of every owner,
    /// and keys.
    System,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 3] = [Self::Read, Self::Run, Self::System];
}

fn not_a_scope(text: &str) -> ValueError {
    ValueError::new(text, "is not a scope", "type `read`, `run` or `system`")
}

/// What a key opens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Scopes(BTreeSet<Scope>);

impl Scopes {
    /// Every scope.
    #[must_use]
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Whether the key opens this.
    #[must_use]
    pub fn allow(&self, scope: Scope) -> bool {
        self.0.contains(&scope)
    }

    /// Each scope, once.
    pub fn iter(&self) -> impl Iterator<Item = Scope> {
        self.0.iter().copied()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<T: IntoIterator<Item = Scope>>(scopes: T) -> Self {
        Self(scopes.into_iter().collect())
    }
}

/// As in `read,run`.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, scope) in self.iter().enumerate() {
            write!(f, "{}{scope}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for Scopes {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        text.split(',').map(|name| name.trim().parse()).collect()
    }
}

named!(Scope);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_shown() {
        let scopes: Scopes = "run, read".parse().unwrap();
        assert_eq!(scopes.to_string(), "read,run");
        assert!(scopes.allow(Scope::Run) && !scopes.allow(Scope::System));
        for text in ["", "read,", "admin"] {
            assert!(text.parse::<Scopes>().is_err(), "{text}");
        }
    }
}
