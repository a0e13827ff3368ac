use proptest::prelude::*;

use super::*;

fn reason(text: &str) -> &'static str {
    match text.parse::<Host>() {
        Ok(host) => panic!("{text:?} was taken for {host}"),
        Err(error) => error.reason,
    }
}

#[test]
fn names_that_two_parsers_could_read_differently_are_refused() {
    for text in [
        "attacker\0.allowed.com",
        "allowed.com\0.attacker.com",
        "allowed.com\r\nX: y",
        "allowed.com\t",
        " allowed.com",
        "allowed.com ",
        "user@allowed.com",
        "allowed.com@evil.com",
        "user:pass@allowed.com",
        "allowed.com%00.evil.com",
        "%61llowed.com",
        "allowed.com\\.evil.com",
        "allowed.com/evil.com",
        "allowed.com#evil.com",
        "allowed.com?evil.com",
        "allowed。com",
        "аllowed.com",
        "ⓐllowed.com",
        "straße.de",
        "allowed\u{ad}.com",
        "allowed.com.",
        ".allowed.com",
        "allowed..com",
        ".",
        "",
        "-allowed.com",
        "allowed-.com",
        "a.-b.com",
        "allowed,com",
        "*.allowed.com",
        "fe80::1%eth0",
        "[fe80::1%25eth0]",
        "[::1",
        "::1]",
        "[127.0.0.1]",
        "[allowed.com]",
        "[]",
        "[[::1]]",
    ] {
        assert!(!reason(text).is_empty());
        assert!(format!("{text}:443").parse::<HostPort>().is_err(), "{text:?} with a port");
    }
}

#[test]
fn odd_spellings_of_an_address_are_no_names() {
    for text in [
        "127.1",
        "127.0.1",
        "2130706433",
        "017700000001",
        "0177.0.0.1",
        "0x7f.1",
        "0x7f.0.0.1",
        "0x7f000001",
        "0X7F.0x0.0x0.0x1",
        "127.0.0.01",
        "127.0.0.1.",
        "1.2.3.4.5",
        "256.1.1.1",
        "1.2.3",
        "0x",
        "a.0x1f",
        "evil.com.1",
        "0",
        "127.0.0.0x1",
    ] {
        assert!(!reason(text).is_empty(), "{text}");
    }
    assert!(reason("127.1").contains("looks like an address"));
}

#[test]
fn lengths_are_those_of_dns() {
    let label = "a".repeat(63);
    assert!(format!("{label}.com").parse::<Host>().is_ok());
    assert!(reason(&format!("{label}a.com")).contains("63"));
    let longest = [label.as_str(), &label, &label, &"a".repeat(61)].join(".");
    assert_eq!(longest.len(), 253);
    assert!(longest.parse::<Host>().is_ok());
    assert!(reason(&format!("{longest}a")).contains("253"));
}

#[test]
fn one_host_has_one_form() {
    for (text, canonical) in [
        ("Example.COM", "example.com"),
        ("localhost", "localhost"),
        ("my_service", "my_service"),
        ("xn--strae-oqa.de", "xn--strae-oqa.de"),
        ("1password.com", "1password.com"),
        ("0x7f.com", "0x7f.com"),
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "[::1]"),
        ("[::1]", "[::1]"),
        ("0:0:0:0:0:0:0:1", "[::1]"),
        ("[2001:DB8::0001]", "[2001:db8::1]"),
        ("::ffff:127.0.0.1", "127.0.0.1"),
        ("[::ffff:7f00:1]", "127.0.0.1"),
    ] {
        assert_eq!(text.parse::<Host>().unwrap().to_string(), canonical, "{text}");
    }
}

#[test]
fn a_port_is_a_plain_number_and_has_to_be_there() {
    for text in [
        "a.com",
        "a.com:",
        "a.com:0",
        "a.com:+443",
        "a.com:0443",
        "a.com:65536",
        "a.com:-1",
        "a.com: 443",
        "a.com:443 ",
        "a.com:４４３",
        "a.com:443:443",
        ":443",
        "::1:443",
        "[::1]",
        "[::1]443",
        "a.com:http",
    ] {
        assert!(text.parse::<HostPort>().is_err(), "{text}");
    }
    assert_eq!("[::1]:443".parse::<HostPort>().unwrap().to_string(), "[::1]:443");
    assert!("::1:443".parse::<HostPort>().unwrap_err().to_string().contains("[::1]:443"));
}

#[test]
fn a_scheme_may_bring_the_port() {
    for (text, canonical) in [("a.com", "a.com:80"), ("a.com:8080", "a.com:8080"), ("[::1]", "[::1]:80")] {
        assert_eq!(HostPort::parse_with_default(text, 80).unwrap().to_string(), canonical);
    }
    for text in ["a.com:", "u@a.com", "a.com:0", ""] {
        assert!(HostPort::parse_with_default(text, 80).is_err(), "{text}");
    }
}

#[test]
fn an_error_shows_the_text_printable_and_cut() {
    let error = format!("a\0{}", "b".repeat(5000)).parse::<Host>().unwrap_err().to_string();
    assert!(error.contains("\\u{0}") && error.len() < 400, "{error}");
}

proptest! {
    #[test]
    fn what_is_taken_is_canonical_and_reads_back(text in "\\PC{0,60}|[a-fA-F0-9x.:\\[\\]_-]{0,40}") {
        if let Ok(host) = text.parse::<Host>() {
            prop_assert_eq!(&host.to_string().parse::<Host>().unwrap(), &host);
            if let Host::Name(name) = &host {
                prop_assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b)));
                prop_assert!(name.parse::<IpAddr>().is_err());
                prop_assert!(!name.rsplit('.').next().unwrap().bytes().all(|b| b.is_ascii_digit()));
            }
        }
    }

    #[test]
    fn every_address_reads_back_with_and_without_brackets(bits: u128) {
        let address = Ipv6Addr::from_bits(bits);
        let bare: Host = address.to_string().parse().unwrap();
        let bracketed: Host = format!("[{address}]").parse().unwrap();
        prop_assert_eq!(&bare, &bracketed);
        prop_assert_eq!(bare, Host::Address(IpAddr::V6(address).to_canonical()));
    }

    #[test]
    fn a_single_odd_byte_spoils_a_name(position in 0usize..11, byte in any::<u8>()) {
        let mut bytes = b"allowed.com".to_vec();
        bytes.insert(position, byte);
        if let Ok(text) = String::from_utf8(bytes) {
            let plain = byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            prop_assert!(plain || text.parse::<Host>().is_err(), "{:?}", text);
        }
    }
}
