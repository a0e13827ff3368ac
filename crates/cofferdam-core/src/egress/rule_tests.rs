use proptest::prelude::*;

use super::*;

fn rule(text: &str) -> AllowRule {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn lists(rule_text: &str, target: &str) -> bool {
    rule(rule_text).lists(&target.parse().unwrap())
}

#[test]
fn an_exact_rule_lists_one_host_at_one_port() {
    assert!(lists("registry.npmjs.org:443", "REGISTRY.npmjs.ORG:443"));
    assert!(lists("[::1]:80", "[0:0:0:0:0:0:0:1]:80"));
    assert!(lists("127.0.0.1:80", "[::ffff:127.0.0.1]:80"));
    for target in ["registry.npmjs.org:80", "npmjs.org:443", "x.registry.npmjs.org:443", "1.2.3.4:443"] {
        assert!(!lists("registry.npmjs.org:443", target), "{target}");
    }
}

#[test]
fn a_wildcard_lists_whole_labels_in_front_and_never_the_base() {
    let wildcard = "*.example.com:443";
    assert!(lists(wildcard, "a.example.com:443"));
    assert!(lists(wildcard, "a.b.example.com:443"));
    for target in ["example.com:443", "badexample.com:443", "a.example.com:80", "a.example.com.evil.net:443"]
    {
        assert!(!lists(wildcard, target), "{target}");
    }
}

#[test]
fn a_star_elsewhere_is_refused_with_what_to_write() {
    for text in
        ["*:443", "*.com:443", "a.*.com:443", "*a.example.com:443", "*.*.example.com:443", "*.10.0.0.1:443"]
    {
        let error = text.parse::<AllowRule>().unwrap_err().to_string();
        assert!(error.contains("*.example.com:443") || error.contains("not a host"), "{text}: {error}");
    }
}

#[test]
fn a_rule_without_a_port_says_what_to_type() {
    for (text, written) in [
        ("example.com", "example.com:443"),
        ("*.example.com", "*.example.com:443"),
        ("10.0.0.1", "10.0.0.1:443"),
        ("::1", "[::1]:443"),
        ("[::1]", "[::1]:443"),
        ("https://example.com/", "example.com:443"),
        ("http://example.com", "example.com:80"),
        ("https://example.com:8443/x", "example.com:8443"),
    ] {
        let error = text.parse::<AllowRule>().unwrap_err();
        assert_eq!(error, RuleError::NoPort { text: text.to_owned(), written: written.to_owned() });
    }
}

#[test]
fn a_rule_reads_back_from_json_and_a_bad_one_does_not() {
    let rule = rule("*.example.com:443");
    let json = serde_json::to_string(&rule).unwrap();
    assert_eq!(json, "\"*.example.com:443\"");
    assert_eq!(serde_json::from_str::<AllowRule>(&json).unwrap(), rule);
    assert!(serde_json::from_str::<AllowRule>("\"a\\u0000.example.com:443\"").is_err());
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic_and_what_it_takes_reads_back(text in "\\PC{0,40}|[*.a-z0-9:\\[\\]-]{0,30}") {
        if let Ok(rule) = text.parse::<AllowRule>() {
            prop_assert_eq!(rule.to_string().parse::<AllowRule>().unwrap(), rule);
        }
    }

    #[test]
    fn what_a_wildcard_lists_ends_with_a_dot_and_its_base(name in "[a-z.]{1,20}example\\.com") {
        if let Ok(target) = format!("{name}:443").parse::<HostPort>() {
            let listed = rule("*.example.com:443").lists(&target);
            prop_assert_eq!(listed, name.ends_with(".example.com"));
        }
    }
}
