//! Keys, logins and addresses of the models. Whether there is a key is said, and never a part of it.

use std::path::Path;

use cofferdam_runner::installation::Cli;
use cofferdam_sandbox::{Finding, Status};

use crate::caller::Caller;

/// What there is to reach models with.
pub(super) struct Models {
    anthropic: bool,
    openai: bool,
    pub(super) findings: Vec<Finding>,
}

impl Models {
    /// Whether a run of this CLI has a key.
    pub(super) fn has_key_for(&self, cli: Cli) -> bool {
        match cli {
            Cli::ClaudeCode => self.anthropic,
            Cli::Codex => self.openai,
            Cli::OpenCode => self.anthropic || self.openai,
        }
    }
}

/// A vendor, with the names of what it is reached with.
struct Vendor {
    key_name: &'static str,
    title: &'static str,
    keys: &'static [&'static str],
    url_name: &'static str,
    url: &'static str,
    public_url: &'static str,
    /// Login files below the home, with the CLI that made them.
    logins: &'static [(&'static str, &'static str)],
}

const ANTHROPIC: Vendor = Vendor {
    key_name: "anthropic_key",
    title: "Anthropic",
    keys: &["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"],
    url_name: "anthropic_url",
    url: "ANTHROPIC_BASE_URL",
    public_url: "https://api.anthropic.com",
    logins: &[(".claude/.credentials.json", "Claude Code")],
};

const OPENAI: Vendor = Vendor {
    key_name: "openai_key",
    title: "OpenAI",
    keys: &["OPENAI_API_KEY"],
    url_name: "openai_url",
    url: "OPENAI_BASE_URL",
    public_url: "https://api.openai.com/v1",
    logins: &[(".codex/auth.json", "Codex")],
};

/// Looks for keys, logins and addresses.
pub(super) fn models(caller: &Caller) -> Models {
    let mut findings = Vec::new();
    for vendor in [&ANTHROPIC, &OPENAI] {
        findings.push(key(vendor, caller));
        findings.push(url(vendor, caller));
    }
    if let Some(login) = login(caller, ".local/share/opencode/auth.json", "OpenCode") {
        findings.push(Finding::new(
            "opencode_login",
            Status::Weak,
            &login,
            "export ANTHROPIC_API_KEY or OPENAI_API_KEY",
        ));
    }
    let has_key = |vendor: &Vendor| vendor.keys.iter().any(|name| caller.var(name).is_some());
    Models { anthropic: has_key(&ANTHROPIC), openai: has_key(&OPENAI), findings }
}

fn key(vendor: &Vendor, caller: &Caller) -> Finding {
    let set: Vec<&str> = vendor.keys.iter().copied().filter(|name| caller.var(name).is_some()).collect();
    if !set.is_empty() {
        return Finding::ok(vendor.key_name, format!("{} (set; not tried)", set.join(", ")));
    }
    let mut detail = format!("no key for {}", vendor.title);
    for (file, cli) in vendor.logins {
        detail.extend(login(caller, file, cli).map(|login| format!("; {login}")));
    }
    Finding::new(vendor.key_name, Status::Weak, &detail, &format!("export {}=…", vendor.keys[0]))
}

/// A login file that is there. It is not opened.
fn login(caller: &Caller, file: &str, cli: &str) -> Option<String> {
    let path = caller.home()?.join(Path::new(file));
    path.is_file().then(|| {
        format!(
            "the login of {cli} in ~/{file} is not used yet (from the next release on), a key is needed now"
        )
    })
}

fn url(vendor: &Vendor, caller: &Caller) -> Finding {
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
