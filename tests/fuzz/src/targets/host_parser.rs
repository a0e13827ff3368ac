//! The one parser of hosts, and the rules that are made of them. The input is a host, or a rule and a target on
//! two lines.

use std::net::IpAddr;

use cofferdam_core::{AllowRule, Host, HostPort};

use crate::pieces::first_line;

pub(crate) fn feed(input: &[u8]) {
    let (first, second) = first_line(input);
    // What is refused because of its bytes must be refused in every form that reaches the parser.
    let (first, second) = (String::from_utf8_lossy(first), String::from_utf8_lossy(second));
    for text in [&*first, &*second] {
        host(text);
        host_port(text);
    }
    if let Ok(rule) = first.parse::<AllowRule>() {
        let shown = rule.to_string();
        assert_eq!(shown.parse::<AllowRule>().as_ref(), Ok(&rule), "`{shown}` is another rule");
        if let Ok(target) = second.parse::<HostPort>() {
            lists(&rule, &target);
        }
    }
}

fn host(text: &str) {
    let Ok(host) = text.parse::<Host>() else { return };
    let shown = host.to_string();
    assert_eq!(shown.parse::<Host>().as_ref(), Ok(&host), "`{shown}` is another host");
    match &host {
        Host::Name(name) => {
            let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
            assert!(name.bytes().all(plain) && name.len() <= 253, "{name:?}");
            assert!(name.split('.').all(|label| (1..=63).contains(&label.len())), "{name:?}");
            assert!(name.parse::<IpAddr>().is_err(), "{name:?} is an address");
            // What `inet_aton` and browsers take for an address must not be a name.
            let last = name.rsplit('.').next().unwrap_or_default();
            assert!(
                !last.starts_with(|c: char| c.is_ascii_digit()) || last.parse::<u128>().is_err(),
                "{name:?}"
            );
            assert_eq!(text.to_ascii_lowercase(), *name);
        }
        Host::Address(address) => {
            assert_eq!(*address, address.to_canonical(), "an IPv4 address in disguise");
            assert!(text.bytes().all(|b| b.is_ascii_hexdigit() || b"[]:.".contains(&b)), "{text:?}");
        }
    }
}

fn host_port(text: &str) {
    if let Ok(read) = text.parse::<HostPort>() {
        let shown = read.to_string();
        assert_eq!(shown.parse::<HostPort>().as_ref(), Ok(&read), "`{shown}` is another target");
        assert_ne!(read.port, 0);
        // Who decides and who dials come by different ways.
        assert_eq!(HostPort::parse_with_default(text, 443).as_ref(), Ok(&read));
    } else if let Ok(read) = HostPort::parse_with_default(text, 443) {
        assert_eq!(read.port, 443, "{text:?}");
        assert_eq!(text.parse::<Host>().as_ref(), Ok(&read.host));
    }
}

/// An independent reading of what a rule lists.
fn lists(rule: &AllowRule, target: &HostPort) {
    let (shown, wanted) = (target.to_string(), rule.to_string());
    let expected = match wanted.strip_prefix('*') {
        Some(below) => shown.ends_with(below) && shown.len() > below.len(),
        None => shown == wanted,
    };
    assert_eq!(rule.lists(target), expected, "{wanted} and {shown}");
}
