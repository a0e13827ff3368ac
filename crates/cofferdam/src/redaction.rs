//! What of the caller's must not be seen by others: keys, tokens and the passwords of proxies in the environment, and
//! the tokens of the agent CLIs' logins.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::sync::OnceLock;

use cofferdam_core::{Redactor, Secrets, Work};

use crate::caller::Caller;
use crate::failure::UsageError;
use crate::secrets::logins;

/// How the names of variables with secrets end, whatever stands before it.
const ENDINGS: [&str; 13] = [
    "_TOKEN",
    "_SECRET",
    "_PASSWORD",
    "_PASSWD",
    "_PASSPHRASE",
    "_API_KEY",
    "_APIKEY",
    "_ACCESS_KEY",
    "_SECRET_KEY",
    "_PRIVATE_KEY",
    "_AUTH",
    "_PAT",
    "_SESSION_KEY",
];

/// Names that are secrets as a whole.
const NAMES: [&str; 5] = ["TOKEN", "SECRET", "PASSWORD", "API_KEY", "PGPASSWORD"];

/// The redactor of this process, once the caller is known. Everything that is said goes through it.
static KNOWN: OnceLock<Redactor> = OnceLock::new();

/// Makes the caller's secrets known to everything that this process says.
pub(crate) fn know(caller: &Caller) -> Redactor {
    let all = || Redactor::new(of(caller)).with(logins(caller).secrets().iter().map(String::as_str));
    KNOWN.get_or_init(all).clone()
}

/// The redactor of this process; before the caller is known, one that knows addresses alone.
pub(crate) fn redactor() -> Redactor {
    KNOWN.get().cloned().unwrap_or_default()
}

/// Refuses a command or prompt with a secret in it: it would be kept in the record and given to the agent.
pub(crate) fn refuse_in(work: &Work) -> Result<(), UsageError> {
    let text = serde_json::to_string(work).unwrap_or_default();
    if !redactor().finds(text.as_bytes()) {
        return Ok(());
    }
    Err(UsageError::new(
        "the command or prompt has the value of a secret variable of yours in it, which would be kept",
        "let the program read it: `--env NAME`, and '$NAME' in single quotes",
    ))
}

/// Writes log lines without secrets. Tracing writes a whole line at once.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct RedactedStderr;

impl Write for RedactedStderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().write_all(&redactor().bytes(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// The secrets in the caller's environment.
fn of(caller: &Caller) -> Secrets {
    let mut secrets = Secrets::default();
    for (name, value) in &caller.env {
        // A value that is not text is looked for as far as it is.
        let value = value.to_string_lossy();
        if is_secret(name) {
            secrets.add(&value);
        }
        // Proxies, upstreams, databases: wherever an address has a password.
        secrets.add_address(&value);
    }
    secrets
}

fn is_secret(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor_of(env: &[(&str, &str)]) -> Redactor {
        let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Redactor::new(of(&Caller { env, current_folder: "/".into() }))
    }

    #[test]
    fn keys_tokens_and_passwords_are_secrets_and_other_variables_are_not() {
        for name in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "GITLAB_TOKEN",
            "NPM_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "db_password",
        ] {
            assert_eq!(redactor_of(&[(name, "value-of-it")]).text("a value-of-it"), "a [redacted]", "{name}");
        }
        for name in ["HOME", "EDITOR", "TOKENIZERS_PARALLELISM", "SSH_AUTH_SOCK"] {
            assert_eq!(
                redactor_of(&[(name, "value-of-it")]).text("a value-of-it"),
                "a value-of-it",
                "{name}"
            );
        }
    }

    #[test]
    fn the_password_of_a_proxy_is_a_secret() {
        let redactor = redactor_of(&[("https_proxy", "http://somebody:some-password@proxy:1")]);
        assert_eq!(redactor.text("somebody some-password proxy"), "somebody [redacted] proxy");
    }
}
