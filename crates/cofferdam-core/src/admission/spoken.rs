//! How a caller writes what it wishes: so that an error names it as the caller wrote it.

/// How a caller writes what it wishes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Spoken {
    /// As flags: `--network sealed`.
    #[default]
    Flags,
    /// As fields of `options` in JSON: `"network": "sealed"`.
    Fields,
}

impl Spoken {
    /// The name of a wish, such as `network` or `max_attempts`.
    #[must_use]
    pub fn name(self, wish: &str) -> String {
        match self {
            Self::Flags => format!("--{}", wish.replace('_', "-")),
            Self::Fields => format!("options.{wish}"),
        }
    }

    /// A wish with its value, as it is to be written.
    #[must_use]
    pub fn with(self, wish: &str, value: &str) -> String {
        match self {
            Self::Flags => format!("`{} {value}`", self.name(wish)),
            Self::Fields => format!("`\"{wish}\": \"{value}\"`"),
        }
    }
}
