//! What types that are written as text have in common.

/// Makes types of texts that follow a rule. The rule is a function that answers with the text as it is kept.
macro_rules! checked_text {
    ($($(#[$doc:meta])* $name:ident: $rule:path => $error:ty;)+) => { $(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::str::FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                $rule(text).map(Self)
            }
        }

        $crate::text::written_as_text!($name);
    )+ };
}
pub(crate) use checked_text;

/// A value that is kept as the text it prints as, and read as it is parsed.
macro_rules! written_as_text {
    ($($value:ty),+) => { $(
        impl TryFrom<String> for $value {
            type Error = <$value as std::str::FromStr>::Err;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$value> for String {
            fn from(value: $value) -> Self {
                value.to_string()
            }
        }
    )+ };
}
pub(crate) use written_as_text;

/// Gives a closed list of words, whose names `strum` makes, the usual way to ask for a name.
macro_rules! named {
    ($($value:ty),+) => { $(
        impl $value {
            /// Its name: on the wire, in the record, and where people write it.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                self.into()
            }
        }
    )+ };
}
pub(crate) use named;
