//! Keys, logins and addresses of the models. Whether there is a key is said, and never a part of it.

use cofferdam_agent::profile;
use cofferdam_core::{Agent, Login, Vendor};
use cofferdam_runner::logins::{LoginError, Logins, OpenLogin, shown_path};
use cofferdam_sandbox::{Finding, Status};

use crate::caller::{Caller, now_ms};
use crate::secrets;

/// What there is to reach models with.
pub(super) struct Models {
    usable: Vec<Agent>,
    pub(super) findings: Vec<Finding>,
}

impl Models {
    /// Whether a run of this agent has a key or a login.
    pub(super) fn has_key_for(&self, agent: Agent) -> bool {
        self.usable.contains(&agent)
    }
}

/// A vendor, with the names of what it is reached with.
struct Names {
    vendor: Vendor,
    key_name: &'static str,
    title: &'static str,
    /// Keys that every agent can use.
    keys: &'static [&'static str],
    url_name: &'static str,
    url: &'static str,
    public_url: &'static str,
}

const VENDORS: [Names; 2] = [
    Names {
        vendor: Vendor::Anthropic,
        key_name: "anthropic_key",
        title: "Anthropic",
        keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"],
        url_name: "anthropic_url",
        url: "ANTHROPIC_BASE_URL",
        public_url: "https://api.anthropic.com",
    },
    Names {
        vendor: Vendor::Openai,
        key_name: "openai_key",
        title: "OpenAI",
        keys: &["OPENAI_API_KEY"],
        url_name: "openai_url",
        url: "OPENAI_BASE_URL",
        public_url: "https://api.openai.com/v1",
    },
];

/// Looks for keys, logins and addresses.
pub(super) fn models(caller: &Caller) -> Models {
    let logins = secrets::logins(caller);
    let mut findings = Vec::new();
    for names in &VENDORS {
        findings.push(key(names, caller, &logins));
        findings.push(url(names, caller));
    }
    let of_several = Agent::ALL.into_iter().filter(|agent| vendors(*agent).len() > 1);
    findings.extend(of_several.filter_map(|agent| login_of(agent, caller, &logins)));
    let can = |agent: &Agent| {
        let names = VENDORS.iter().filter(|names| vendors(*agent).contains(&names.vendor));
        names.into_iter().any(|names| is_open(names, *agent, caller, &logins))
    };
    Models { usable: Agent::ALL.into_iter().filter(can).collect(), findings }
}

/// Whose models an agent can use, whatever it is asked for.
fn vendors(agent: Agent) -> &'static [Vendor] {
    (profile(agent).vendors)(None)
}

/// The variable with a key of this vendor that is for the agent alone.
fn own_key(agent: Agent, vendor: Vendor) -> Option<&'static str> {
    profile(agent).own_key.as_ref().filter(|key| key.vendor == vendor).map(|key| key.variable)
}

fn is_open(names: &Names, agent: Agent, caller: &Caller, logins: &Logins) -> bool {
    names.keys.iter().copied().chain(own_key(agent, names.vendor)).any(|name| caller.var(name).is_some())
        || logins.current(agent, names.vendor, now_ms()).is_ok()
}

/// A key for a vendor, or else the login of an agent that has no other vendor.
fn key(names: &Names, caller: &Caller, logins: &Logins) -> Finding {
    let own = Agent::ALL.into_iter().filter_map(|agent| own_key(agent, names.vendor));
    let all = names.keys.iter().copied().chain(own);
    let set: Vec<&str> = all.filter(|name| caller.var(name).is_some()).collect();
    if !set.is_empty() {
        return Finding::ok(names.key_name, format!("{} (set; not tried)", set.join(", ")));
    }
    let weak = |detail: &str, hint: &str| Finding::new(names.key_name, Status::Weak, detail, hint);
    let missing = format!("neither a key for {} nor a login", names.title);
    let mut first_problem = None;
    for agent in Agent::ALL.into_iter().filter(|agent| *vendors(*agent) == [names.vendor]) {
        let problem = match logins.current(agent, names.vendor, now_ms()) {
            Ok(open) => return Finding::ok(names.key_name, login(&open, agent, caller)),
            Err(LoginError::Missing { .. }) => weak(&missing, profile(agent).login.log_in),
            Err(error @ (LoginError::Expired { .. } | LoginError::Unusable { .. })) => {
                weak(&error.to_string(), &error.hint())
            }
        };
        first_problem.get_or_insert(problem);
    }
    first_problem.unwrap_or_else(|| weak(&missing, &format!("export {}=…", names.vendor.key_variable())))
}

/// The login of an agent that has one for each of several vendors. Whoever has none need not be told.
fn login_of(agent: Agent, caller: &Caller, logins: &Logins) -> Option<Finding> {
    let name = profile(agent).login.finding;
    let mut problem = None;
    for &vendor in vendors(agent) {
        match logins.current(agent, vendor, now_ms()) {
            Ok(open) => return Some(Finding::ok(name, login(&open, agent, caller))),
            Err(LoginError::Missing { .. }) => {}
            Err(error) => problem = Some(error),
        }
    }
    problem.map(|error| Finding::new(name, Status::Weak, &error.to_string(), &error.hint()))
}

/// A login that could be used. What is said of it is what its file says.
fn login(open: &OpenLogin, agent: Agent, caller: &Caller) -> String {
    let title = profile(agent).title;
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
