//! Which addresses may be fetched.

use cofferdam_core::{AllowRule, HostPort};
use url::Url;

/// The longest address. What is longer carries something else.
const LONGEST: usize = 2000;

/// Reads an address that the model wrote.
pub(super) fn read(text: &str) -> Result<Url, String> {
    let text = text.trim();
    if text.len() > LONGEST {
        return Err(format!("the address is longer than {LONGEST} characters"));
    }
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    Url::parse(&with_scheme).map_err(|error| format!("`{}` is not an address: {error}", shown(text)))
}

/// Whether an address may be fetched: for the first one and for each that a server sends to. Which address of the network its
/// name leads to is checked when it is dialled.
pub(super) fn check(url: &Url, allow: &[AllowRule]) -> Result<(), String> {
    let port = match url.scheme() {
        "https" => 443,
        "http" => 80,
        scheme => {
            return Err(format!(
                "`{}:` is not fetched: use an address that begins with https:",
                shown(scheme)
            ));
        }
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address with a user name or password is not fetched".to_owned());
    }
    if url.as_str().len() > LONGEST {
        return Err(format!("the address is longer than {LONGEST} characters"));
    }
    // The reading that is dialled is the one that decides.
    let target = HostPort::parse_with_default(url.authority(), port).map_err(|error| error.to_string())?;
    let is_listed = allow.iter().any(|rule| rule.lists(&target));
    match (allow.is_empty(), is_listed) {
        (_, true) => Ok(()),
        (true, false) if matches!(target.port, 80 | 443) => Ok(()),
        (true, false) => Err(format!("{target} is not fetched: pages are fetched from the ports 80 and 443")),
        (false, false) => Err(format!(
            "{target} is not fetched: only hosts that are listed here are (`tools.web_fetch.allow`)"
        )),
    }
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: &str, allow: &[&str]) -> Result<(), String> {
        let allow: Vec<AllowRule> = allow.iter().map(|rule| rule.parse().unwrap()).collect();
        check(&read(text)?, &allow)
    }

    #[test]
    fn pages_of_the_web_are_fetched_and_nothing_else() {
        for text in ["https://a.example/x?y#z", "http://a.example", "a.example/x", " https://a.example:443/ "]
        {
            assert_eq!(judge(text, &[]), Ok(()), "{text}");
        }
        for (text, part) in [
            ("file:///etc/passwd", "`file:` is not fetched"),
            ("gopher://a.example/_x", "`gopher:`"),
            ("https://me:secret@a.example/", "user name or password"),
            ("https://a.example:22/", "ports 80 and 443"),
            ("https://a.example:6379/", "ports 80 and 443"),
            ("https://", "not an address"),
            ("https://a.example./", "dot at the end"),
            ("data://text/plain,x", "`data:`"),
        ] {
            let error = judge(text, &[]).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(
            judge(&format!("https://a.example/{}", "x".repeat(2000)), &[]).unwrap_err().contains("longer")
        );
    }

    #[test]
    fn with_a_list_only_what_is_on_it() {
        let list = ["docs.rs:443", "*.python.org:443", "127.0.0.1:8080"];
        for text in ["https://docs.rs/serde", "https://www.python.org", "http://127.0.0.1:8080/x"] {
            assert_eq!(judge(text, &list), Ok(()), "{text}");
        }
        for text in [
            "http://docs.rs/serde",
            "https://evil.example/?docs.rs",
            "https://docs.rs.evil.example/",
            "https://python.org/",
            "http://127.0.0.1:8081/",
            "https://docs.rs@evil.example/",
        ] {
            assert!(judge(text, &list).is_err(), "{text}");
        }
    }

    /// The attack: one text that a filter reads as a name and a dialler as this machine.
    #[test]
    fn addresses_in_disguise_are_read_as_what_is_dialled() {
        for text in ["http://0x7f.1/", "http://2130706433/", "http://127.1/", "http://0177.0.0.1/"] {
            let url = read(text).unwrap();
            assert_eq!(url.host_str(), Some("127.0.0.1"), "{text}");
        }
        assert_eq!(read("http://①②⑦.0.0.1/").unwrap().host_str(), Some("127.0.0.1"));
        assert_eq!(read("https://bücher.example/").unwrap().host_str(), Some("xn--bcher-kva.example"));
    }
}
