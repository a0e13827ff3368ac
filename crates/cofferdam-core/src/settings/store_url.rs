//! Where the record of runs is, if it is in a database of many nodes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::value::ValueError;

const HINT: &str = "type an address such as `postgres://cofferdam@db.example/cofferdam?sslmode=verify-full`";

/// What may stand behind the `?`. A misspelt `sslmode` would be no TLS at all.
const PARAMETERS: [&str; 12] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// The address of a PostgreSQL database. It may hold a password: whatever prints it leaves that out, and
/// [`StoreUrl::secret`] alone gives it away.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StoreUrl(String);

impl StoreUrl {
    /// The whole address, with its password.
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.0
    }

    /// The password, if it holds one: as it is written, so that what repeats the address can be found.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        let parts = Parts::of(&self.0);
        parts.password.or_else(|| parts.parameter("password")).filter(|password| !password.is_empty())
    }

    /// The address as it can be pasted for another program: without the password, and without what it says to the server
    /// for this program alone.
    #[must_use]
    pub fn without_password(&self) -> String {
        let parts = Parts::of(&self.0);
        let user = parts.user.map(|user| format!("{user}@")).unwrap_or_default();
        let ours = ["password", "options", "application_name"];
        let parameters = parts.parameters().filter(|(name, _)| !ours.contains(name));
        let parameters: Vec<String> = parameters.map(|(name, value)| format!("{name}={value}")).collect();
        let query = if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) };
        format!("{}{user}{}{query}", parts.scheme, parts.place)
    }

    /// Whether it says who asks.
    #[must_use]
    pub fn names_user(&self) -> bool {
        let parts = Parts::of(&self.0);
        parts.user.is_some_and(|user| !user.is_empty()) || parts.parameter("user").is_some()
    }
}

impl FromStr for StoreUrl {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let refuse = |problem: &str| ValueError::new(&shown(text), problem, HINT);
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(refuse("holds a space or a control character"));
        }
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => {}
            Some(_) | None => return Err(refuse("is not the address of a PostgreSQL database")),
        }
        match Parts::of(text).parameters().find(|(name, _)| !PARAMETERS.contains(name)) {
            Some((name, _)) => Err(refuse(&format!("has the parameter `{name}`, which is not known"))),
            None => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreUrl({self})")
    }
}

crate::text::written_as_text!(StoreUrl);

/// The address without what only its owner may know: the password, and everything behind the `?` but how to connect.
fn shown(text: &str) -> String {
    let parts = Parts::of(text);
    let user = parts.user.map(|user| match parts.password {
        Some(_) => format!("{user}:***@"),
        None => format!("{user}@"),
    });
    let open = |(name, value): (&str, &str)| match name {
        "sslmode" | "host" | "hostaddr" | "port" | "dbname" | "user" => format!("{name}={value}"),
        name => format!("{name}=***"),
    };
    let parameters: Vec<String> = parts.parameters().map(open).collect();
    let query = if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) };
    format!("{}{}{}{query}", parts.scheme, user.unwrap_or_default(), parts.place)
}

/// An address taken apart. The password ends at the last `@` before the path, as everybody reads it.
struct Parts<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    password: Option<&'a str>,
    /// Host, port and path.
    place: &'a str,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let after_scheme = text.find("://").map_or(0, |at| at + 3);
        let (scheme, rest) = text.split_at(after_scheme);
        let (address, query) = rest.split_once('?').unwrap_or((rest, ""));
        // A `#` or `/` in a password must be written otherwise; if it is not, all of it counts as the password.
        let (login, place) = match address.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, address),
        };
        let (user, password) = match login.map(|login| login.split_once(':').ok_or(login)) {
            Some(Ok((user, password))) => (Some(user), Some(password)),
            Some(Err(user)) => (Some(user), None),
            None => (None, None),
        };
        Self { scheme, user, password, place, query }
    }

    fn parameters(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = self.query.split('&').filter(|pair| !pair.is_empty());
        pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters().find(|(found, _)| *found == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_shown_nowhere() {
        for text in [
            "postgres://me:hunter22@db.example:5432/record?sslmode=verify-full",
            "postgresql://me:hunter22@[::1]/record",
            "postgres://me:hunter22@/record?host=/run/postgresql",
            "postgres:///record?user=me&password=hunter22",
            "postgres://me:hun@ter22/hunter22@db.example/record",
            "postgres://me@db.example/record?options=hunter22",
        ] {
            let url: StoreUrl = text.parse().expect(text);
            assert_eq!(url.secret(), text);
            let json = serde_json::to_string(&url).expect("it is a text");
            for shown in [url.to_string(), format!("{url:?}"), json, url.without_password()] {
                assert!(!shown.contains("ter22"), "{shown}");
            }
        }
        let url: StoreUrl = "postgres://me:hunter22@db.example/record".parse().expect("an address");
        assert_eq!(url.to_string(), "postgres://me:***@db.example/record");
        assert_eq!(url.password(), Some("hunter22"));
    }

    #[test]
    fn an_address_can_be_pasted_without_its_password() {
        for (text, pasted) in [
            (
                "postgres://me:pw@db.example:5432/x?sslmode=require",
                "postgres://me@db.example:5432/x?sslmode=require",
            ),
            ("postgres:///x?host=/run/pg&user=me&password=pw", "postgres:///x?host=/run/pg&user=me"),
            (
                "postgres://db.example/x?application_name=a&sslrootcert=/ca.pem",
                "postgres://db.example/x?sslrootcert=/ca.pem",
            ),
        ] {
            assert_eq!(text.parse::<StoreUrl>().expect(text).without_password(), pasted);
        }
    }

    #[test]
    fn other_addresses_are_refused_without_repeating_a_password() {
        for text in
            ["", "me:hunter22@db", "mysql://me:hunter22@db/x", "postgres://me:hunter22@db/x?sslmod=require"]
        {
            let error = text.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(error.contains("type an address such as") && !error.contains("hunter22"), "{error}");
        }
    }

    #[test]
    fn who_asks_may_be_left_to_the_system() {
        let names_user = |text: &str| text.parse::<StoreUrl>().expect(text).names_user();
        assert!(names_user("postgres://me@/record") && names_user("postgres:///record?user=me"));
        assert!(!names_user("postgres:///record?host=/run/postgresql"));
    }
}
