//! Keys, logins and addresses of the models. Whether there is a key is said, and never a part of it.

use cofferdam_core::{Agent, Login, Vendor};
use cofferdam_runner::logins::{LoginError, Logins, OpenLogin, log_in, shown_path};
use cofferdam_sandbox::{Finding, Status};

use crate::caller::{Caller, now_ms};
use crate::secrets;

/// What there is to reach models with.
pub(super) struct Models {
    usable: Vec<Agent>,
    pub(super) findings: Vec<Finding>,
}

impl Models {
    /// Whether a run of this CLI has a key or a login.
    pub(super) fn has_key_for(&self, cli: Agent) -> bool {
        self.usable.contains(&cli)
    }
}

/// A vendor, with the names of what it is reached with.
struct Names {
    vendor: Vendor,
    key_name: &'static str,
    title: &'static str,
    /// Keys that every agent can use.
    keys: &'static [&'static str],
    /// Variables that are for the vendor's own CLI alone.
    own_keys: &'static [&'static str],
    /// The vendor's own CLI.
    cli: Agent,
    url_name: &'static str,
    url: &'static str,
    public_url: &'static str,
}

const ANTHROPIC: Names = Names {
    vendor: Vendor::Anthropic,
    key_name: "anthropic_key",
    title: "Anthropic",
    keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
    own_keys: &["CLAUDE_CODE_OAUTH_TOKEN"],
    cli: Agent::ClaudeCode,
    url_name: "anthropic_url",
    url: "ANTHROPIC_BASE_URL",
    public_url: "https://api.anthropic.com",
};

const OPENAI: Names = Names {
    vendor: Vendor::Openai,
    key_name: "openai_key",
    title: "OpenAI",
    keys: &["OPENAI_API_KEY"],
    own_keys: &["CODEX_API_KEY"],
    cli: Agent::Codex,
    url_name: "openai_url",
    url: "OPENAI_BASE_URL",
    public_url: "https://api.openai.com/v1",
};

/// Looks for keys, logins and addresses.
pub(super) fn models(caller: &Caller) -> Models {
    let logins = secrets::logins(caller);
    let mut findings = Vec::new();
    for names in [&ANTHROPIC, &OPENAI] {
        findings.push(key(names, caller, &logins));
        findings.push(url(names, caller));
    }
    findings.extend(opencode(caller, &logins));
    let can = |&cli: &Agent| match cli {
        Agent::ClaudeCode => is_open(&ANTHROPIC, cli, caller, &logins),
        Agent::Codex => is_open(&OPENAI, cli, caller, &logins),
        Agent::OpenCode => {
            [&ANTHROPIC, &OPENAI].into_iter().any(|names| is_open(names, cli, caller, &logins))
        }
    };
    Models { usable: Agent::ALL.into_iter().filter(can).collect(), findings }
}

fn is_open(names: &Names, cli: Agent, caller: &Caller, logins: &Logins) -> bool {
    let own: &[&str] = if cli == names.cli { names.own_keys } else { &[] };
    names.keys.iter().chain(own).any(|name| caller.var(name).is_some())
        || logins.current(cli, names.vendor, now_ms()).is_ok()
}

fn key(names: &Names, caller: &Caller, logins: &Logins) -> Finding {
    let all = names.keys.iter().chain(names.own_keys).copied();
    let set: Vec<&str> = all.filter(|name| caller.var(name).is_some()).collect();
    if !set.is_empty() {
        return Finding::ok(names.key_name, format!("{} (set; not tried)", set.join(", ")));
    }
    match logins.current(names.cli, names.vendor, now_ms()) {
        Ok(open) => Finding::ok(names.key_name, login(&open, names.cli, caller)),
        Err(LoginError::Missing { .. }) => {
            let detail = format!("neither a key for {} nor a login", names.title);
            Finding::new(names.key_name, Status::Weak, &detail, log_in(names.cli))
        }
        Err(error @ (LoginError::Expired { .. } | LoginError::Unusable { .. })) => {
            Finding::new(names.key_name, Status::Weak, &error.to_string(), &error.hint())
        }
    }
}

/// OpenCode has a login of its own for each vendor. Whoever has none need not be told.
fn opencode(caller: &Caller, logins: &Logins) -> Option<Finding> {
    let found = Vendor::ALL.map(|vendor| logins.current(Agent::OpenCode, vendor, now_ms()));
    let mut problem = None;
    for one in found {
        match one {
            Ok(open) => {
                return Some(Finding::ok("opencode_login", login(&open, Agent::OpenCode, caller)));
            }
            Err(LoginError::Missing { .. }) => {}
            Err(error) => problem = Some(error),
        }
    }
    problem.map(|error| Finding::new("opencode_login", Status::Weak, &error.to_string(), &error.hint()))
}

/// A login that could be used. What is said of it is what its file says.
fn login(open: &OpenLogin, cli: Agent, caller: &Caller) -> String {
    let title = cli.title();
    let what = match &open.login {
        Login::Key => "a key".to_owned(),
        Login::ClaudeAi { subscription: plan, .. } | Login::ChatGpt { plan } => {
            format!("a subscription{}", plan.as_ref().map(|plan| format!(" `{plan}`")).unwrap_or_default())
        }
    };
    let left = open.expires_at_ms.map(|at| at.saturating_sub(now_ms()) / 60_000);
    let left =
        left.map(|minutes| format!(", for {} h {} min", minutes / 60, minutes % 60)).unwrap_or_default();
    let path = shown_path(&open.path, caller.home().as_deref());
    format!("the login of {title} in {path} ({what}{left}; not tried)")
}

fn url(vendor: &Names, caller: &Caller) -> Finding {
    let Some(set) = caller.var(vendor.url) else {
        return Finding::ok(vendor.url_name, format!("{} ({} is not set)", vendor.public_url, vendor.url));
    };
    match set.to_str().and_then(without_credentials) {
        Some(shown) => Finding::ok(vendor.url_name, format!("{shown} ({})", vendor.url)),
        None => Finding::new(
            vendor.url_name,
            Status::Weak,
            &format!("{} is set, and is no http or https address", vendor.url),
            &format!("export {}={}", vendor.url, vendor.public_url),
        ),
    }
}

/// An address as far as it is no secret: without user, password, query and fragment. A key may be in each.
fn without_credentials(text: &str) -> Option<String> {
    let (scheme, rest) = text.trim().split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "https" && scheme != "http" {
        return None;
    }
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_graphic() && !"@\\".contains(letter);
    let is_plain = !host.is_empty() && host.chars().all(plain) && path.chars().all(plain);
    is_plain.then(|| format!("{scheme}://{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_may_be_a_secret() {
        let shown = |text| without_credentials(text).unwrap_or_default();
        assert_eq!(shown("https://proxy.example:8443/v1"), "https://proxy.example:8443/v1");
        assert_eq!(shown("https://me:secret@proxy.example/v1?key=secret#secret"), "https://proxy.example/v1");
        assert_eq!(shown("HTTP://a@b:secret@h"), "http://h");
        for text in [
            "",
            "secret",
            "ftp://x",
            "https://",
            "https://me:secret@",
            "https://h/\u{1b}[31m",
            "https://h/a@secret",
        ] {
            assert_eq!(without_credentials(text), None, "{text}");
        }
    }
}
