//! Takes credentials out of git configuration files before an agent sees them: tokens in remote
//! addresses, `http.extraHeader`, credential helpers. A hole that others had is the token that a CI job
//! or a `git clone https://token@…` left in `.git/config`.

/// A configuration file without its credentials.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sanitised {
    /// The file as the agent sees it.
    pub(super) content: Vec<u8>,
    /// The keys that were dropped or shortened.
    pub(super) stripped: Vec<String>,
}

/// Takes the credentials out; `None` if there are none. Works on lines and never fails: what git could
/// not read either is passed on as it is.
pub(super) fn sanitise(content: &[u8]) -> Option<Sanitised> {
    let mut out = Vec::with_capacity(content.len());
    let mut stripped = Vec::new();
    let mut section = String::new();
    for line in logical_lines(content) {
        let (header, rest) = split_header(line);
        if let Some(header) = header {
            section = section_name(header);
            let cleaned = strip_userinfo(header);
            if cleaned != header {
                stripped.push(format!("[{}]", String::from_utf8_lossy(&cleaned).trim_matches(['[', ']'])));
            }
            out.extend_from_slice(&cleaned);
        }
        let key = key_of(rest);
        if key.is_empty() {
            let cleaned = strip_userinfo(rest);
            if cleaned != rest {
                stripped.push("a comment".to_owned());
            }
            out.extend_from_slice(&cleaned);
            continue;
        }
        let name = format!("{section}.{key}");
        if is_secret(&section, &key) {
            stripped.push(name);
            if header.is_some() {
                out.push(b'\n');
            }
            continue;
        }
        let cleaned = strip_userinfo(rest);
        if cleaned != rest {
            stripped.push(name);
        }
        out.extend_from_slice(&cleaned);
    }
    (!stripped.is_empty()).then_some(Sanitised { content: out, stripped })
}

/// The folder that `core.worktree` names, as it is written.
pub(super) fn core_worktree(content: &[u8]) -> Option<Vec<u8>> {
    let mut section = String::new();
    let mut found = None;
    for line in logical_lines(content) {
        let (header, rest) = split_header(line);
        if let Some(header) = header {
            section = section_name(header);
        }
        if section == "core"
            && key_of(rest) == "worktree"
            && let Some(equals) = rest.iter().position(|&b| b == b'=')
        {
            found = Some(rest[equals + 1..].trim_ascii().trim_ascii_end().to_vec());
        }
    }
    found
}

/// The file without `core.worktree`: a copy of the folder has another work tree.
pub(super) fn without_worktree(content: &[u8]) -> Vec<u8> {
    let keep = |line: &&[u8]| key_of(line) != "worktree";
    logical_lines(content).into_iter().filter(keep).flatten().copied().collect()
}

/// Lines, with those that end in a backslash joined to the next.
fn logical_lines(content: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut start = 0;
    for (at, _) in content.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        let before = content[start..at].strip_suffix(b"\r").unwrap_or(&content[start..at]);
        let slashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
        if slashes % 2 == 0 {
            lines.push(&content[start..=at]);
            start = at + 1;
        }
    }
    if start < content.len() {
        lines.push(&content[start..]);
    }
    lines
}

/// `[section "sub"]` and what follows on the same line.
fn split_header(line: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let start = line.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(line.len());
    if line.get(start) != Some(&b'[') {
        return (None, line);
    }
    let mut quoted = false;
    let mut escaped = false;
    for (at, &byte) in line.iter().enumerate().skip(start) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b']' if !quoted => {
                let (header, rest) = line.split_at(at + 1);
                return (Some(header), rest);
            }
            _ => {}
        }
    }
    (None, line)
}

fn section_name(header: &[u8]) -> String {
    let text = String::from_utf8_lossy(header);
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
    let name: String = inner.chars().take_while(|c| !c.is_whitespace() && *c != '"' && *c != '.').collect();
    name.to_ascii_lowercase()
}

fn key_of(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let key: String =
        text.trim_start().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    key.to_ascii_lowercase()
}

fn is_secret(section: &str, key: &str) -> bool {
    // Helpers and user names; a helper inside would ask a store that is not there anyway.
    section == "credential"
        || key == "extraheader"
        || key.ends_with("pass")
        || ["password", "passwd", "passphrase", "token", "secret", "apikey", "api-key"]
            .iter()
            .any(|word| key.contains(word))
}

/// Takes user names and passwords out of every address in a text. Over ssh the user name stays: it is
/// part of the address, and ssh takes no password from there.
fn strip_userinfo(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = find(rest, b"://") {
        let (head, tail) = rest.split_at(at + 3);
        out.extend_from_slice(head);
        let authority = tail.iter().position(|b| b"/?#\"'; \t\r\n\\".contains(b)).unwrap_or(tail.len());
        let host = match tail[..authority].iter().rposition(|&b| b == b'@') {
            Some(end) => {
                let is_ssh = head[..at].ends_with(b"ssh") || head[..at].ends_with(b"SSH");
                if is_ssh && !tail[..end].contains(&b':') { 0 } else { end + 1 }
            }
            None => 0,
        };
        out.extend_from_slice(&tail[host..authority]);
        rest = &tail[authority..];
    }
    out.extend_from_slice(rest);
    strip_bare_userinfo(out)
}

/// `http.proxy = user:password@host:3128` has no scheme.
fn strip_bare_userinfo(text: Vec<u8>) -> Vec<u8> {
    let Some(equals) = text.iter().position(|&b| b == b'=') else { return text };
    let start = equals + 1 + text[equals + 1..].iter().take_while(|b| b" \t\"".contains(b)).count();
    let end =
        text[start..].iter().position(|b| b"/ \t\r\n\"".contains(b)).map_or(text.len(), |at| start + at);
    let Some(at) = text[start..end].iter().rposition(|&b| b == b'@') else { return text };
    if !text[start..start + at].contains(&b':') {
        return text;
    }
    [&text[..start], &text[start + at + 1..]].concat()
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_credentials_is_left_alone() {
        let plain = b"[core]\n\tbare = false\n[remote \"origin\"]\n\turl = git@host:a/b.git\n\tfetch = +refs/*:refs/*\n[x]\nurl = ssh://git@host/a\n";
        assert_eq!(sanitise(plain), None);
    }

    #[test]
    fn every_place_where_a_token_hides_is_cleaned() {
        let file = b"[remote \"origin\"]\n\turl = https://me:hunter2@host/a.git\n\tpushurl = https://hunter2@host/a\n\
            [http \"https://host/\"]\n\textraHeader = AUTHORIZATION: basic hunter2\n\tsslVerify = true\n\
            [credential]\n\thelper = store --file hunter2\n[http] proxy = me:hunter2@proxy:3128\n\
            [url \"https://hunter2@host/\"]\n\tinsteadOf = https://host/\n[sendemail]\n\tsmtpPass = hunter2\n\
            [github]\n\toauth-token = hun\\\nter2 hunter2\n[a] password=hunter2\n";
        let sanitised = sanitise(file).unwrap();
        let text = String::from_utf8(sanitised.content).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("ter2"), "{text}");
        assert!(text.contains("url = https://host/a.git\n\tpushurl = https://host/a\n"), "{text}");
        assert!(text.contains("sslVerify = true") && text.contains("proxy = proxy:3128"), "{text}");
        assert!(text.contains("[url \"https://host/\"]\n\tinsteadOf = https://host/"), "{text}");
        assert_eq!(sanitised.stripped.len(), 9, "{:?}", sanitised.stripped);
    }
}
