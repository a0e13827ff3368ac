use proptest::prelude::*;

use super::*;

const HOST: &str = "host.docker.internal";

#[test]
fn a_loopback_host_is_replaced_and_nothing_else() {
    for (value, rewritten) in [
        ("http://localhost", "http://HOST"),
        ("http://LocalHost/", "http://HOST/"),
        ("http://localhost./", "http://HOST/"),
        ("http://localhost:8080/a%20b?c=localhost#127.0.0.1", "http://HOST:8080/a%20b?c=localhost#127.0.0.1"),
        ("http://localhost:/x", "http://HOST:/x"),
        ("HTTP://127.0.0.1", "HTTP://HOST"),
        ("http://127.0.0.1?x", "http://HOST?x"),
        ("http://127.0.0.1#x", "http://HOST#x"),
        ("http://127.255.255.254:1", "http://HOST:1"),
        ("redis://[::1]:6379/0", "redis://HOST:6379/0"),
        ("redis://[0:0:0:0:0:0:0:1]", "redis://HOST"),
        ("redis://[0000::0001]", "redis://HOST"),
        ("redis://[::ffff:127.0.0.1]:1", "redis://HOST:1"),
        ("redis://[::FFFF:7f00:1]", "redis://HOST"),
        (
            "postgres://user:pa%40ss@localhost:5432/db?sslmode=disable",
            "postgres://user:pa%40ss@HOST:5432/db?sslmode=disable",
        ),
        ("postgres://user:p@ss:w@localhost/db", "postgres://user:p@ss:w@HOST/db"),
        (
            "postgres://localhost:localhost@localhost/localhost",
            "postgres://localhost:localhost@HOST/localhost",
        ),
        ("redis://:secret@127.0.0.1:6379", "redis://:secret@HOST:6379"),
        ("redis://@localhost", "redis://@HOST"),
        ("postgresql+asyncpg://localhost/x", "postgresql+asyncpg://HOST/x"),
        ("http://localhost/a@b:c", "http://HOST/a@b:c"),
        ("http://localhost?next=http://127.0.0.1/", "http://HOST?next=http://127.0.0.1/"),
        ("ws://localhost:00080//", "ws://HOST:00080//"),
        ("http://localhost/ä\n\t ", "http://HOST/ä\n\t "),
        // Lists of hosts.
        ("postgres://a:1,localhost:2/db", "postgres://a:1,HOST:2/db"),
        ("postgres://u:p@localhost:1,127.0.0.1,[::1]:3/db?x=1", "postgres://u:p@HOST:1,HOST,HOST:3/db?x=1"),
        (
            "mongodb://u:p@localhost:27017,db.example:27018/?replicaSet=a,localhost",
            "mongodb://u:p@HOST:27017,db.example:27018/?replicaSet=a,localhost",
        ),
        ("mongodb://%2Ftmp%2Fmongodb.sock,localhost", "mongodb://%2Ftmp%2Fmongodb.sock,HOST"),
    ] {
        assert_eq!(rewrite(value, HOST), Some(rewritten.replace("HOST", HOST)), "{value}");
    }
}

#[test]
fn what_has_no_loopback_host_or_is_not_understood_is_left_alone() {
    for value in [
        "",
        "localhost",
        "localhost:5432",
        "127.0.0.1",
        "//localhost/x",
        "://localhost",
        "1http://localhost",
        "ht tp://localhost",
        " http://localhost",
        "\"http://localhost\"",
        "http:/localhost",
        "http:localhost",
        "http://",
        "http:///localhost",
        "http://example.com/localhost",
        "http://example.com?x=http://localhost",
        "http://localhost@example.com",
        "http://127.0.0.1:80@example.com",
        "http://localhost.example.com",
        "http://app.localhost",
        "http://localhost..",
        "http://notlocalhost",
        "http://localhost6",
        "http://128.0.0.1",
        "http://126.255.255.255",
        "http://10.0.0.1",
        "http://0.0.0.0",
        "http://[::]",
        "http://[::2]",
        "http://[::ffff:10.0.0.1]",
        "http://[::127.0.0.1]",
        "http://[64:ff9b::7f00:1]",
        "http://host.docker.internal:1",
        // Shorthand, hexadecimal and octal forms, and a dot behind an address.
        "http://127.1",
        "http://127.0.1",
        "http://0x7f.0.0.1",
        "http://0x7f000001",
        "http://0177.0.0.1",
        "http://127.0.0.01",
        "http://2130706433",
        "http://127.0.0.1.",
        // Not well formed.
        "http://::1",
        "redis://::1:6379",
        "http://[::1",
        "http://[::1]x",
        "http://[::1%25lo]",
        "http://[127.0.0.1]",
        "http://[localhost]",
        "http://localhost:port",
        "http://localhost:80:80",
        "http://localhost:-1",
        "http://localhost\\x",
        "http://%6cocalhost",
        "http://ｌocalhost",
        "http://localhost /",
        // Of other kinds.
        "file://localhost/etc/hosts",
        "FILE://localhost/etc/hosts",
        "jdbc:postgresql://localhost/db",
        "http://localhost:1,http://localhost:2",
        "localhost:1,localhost:2",
        "redis://localhost:6379 redis://localhost:6380",
        "postgres://localhost:1,[::1/db",
        "host=localhost port=5432",
    ] {
        assert_eq!(rewrite(value, HOST), None, "{value}");
    }
}

#[test]
fn a_list_of_names_holds_for_these_and_the_two_that_always_are() {
    let named = RewriteLoopback::Named(vec!["API_URL".to_owned()]);
    let is_rewritten =
        |setting: &RewriteLoopback, name| setting.rewrite(name, "x://localhost", HOST).is_some();
    for name in ["API_URL", "DATABASE_URL", "REDIS_URL"] {
        assert!(is_rewritten(&named, name), "{name}");
    }
    for name in ["OTHER_URL", "api_url", "database_url"] {
        assert!(!is_rewritten(&named, name), "{name}");
        assert!(is_rewritten(&RewriteLoopback::All, name), "{name}");
    }
    let none = RewriteLoopback::Named(Vec::new());
    assert!(is_rewritten(&none, "REDIS_URL") && !is_rewritten(&none, "API_URL"));
    assert_eq!(RewriteLoopback::All.rewrite("DATABASE_URL", "x://elsewhere", HOST), None);
}

#[test]
fn the_setting_is_all_or_a_list_of_names() {
    let read = |text: &str| serde_json::from_str::<RewriteLoopback>(text);
    assert_eq!(RewriteLoopback::default(), RewriteLoopback::All);
    for (text, setting) in [
        (r#""all""#, RewriteLoopback::All),
        ("[]", RewriteLoopback::Named(Vec::new())),
        (r#"["A_URL","_b2"]"#, RewriteLoopback::Named(vec!["A_URL".to_owned(), "_b2".to_owned()])),
    ] {
        assert_eq!(read(text).unwrap(), setting);
        assert_eq!(serde_json::to_string(&setting).unwrap(), text);
    }
    for text in [r#""none""#, r#"["A B"]"#, r#"["A=1"]"#, r#"["2A"]"#, r#"[""]"#, "true", "[1]", "{}"] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains("type ") && error.contains("\"API_URL\""), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn rewriting_keeps_every_byte_around_the_host(
        scheme in "[a-zA-Z][a-zA-Z0-9+.-]{0,8}",
        userinfo in "([^/?#]{0,12}@)?",
        loopback in "[lL]ocal[hH]ost\\.?|127\\.[0-9]\\.1[0-9]\\.2[0-5][0-5]|\\[::1\\]|\\[::ffff:127\\.0\\.0\\.[1-9]\\]",
        port in "(:[0-9]{0,5})?",
        tail in "([/?#]\\PC{0,20})?",
    ) {
        prop_assume!(!scheme.eq_ignore_ascii_case("file"));
        let value = format!("{scheme}://{userinfo}{loopback}{port}{tail}");
        prop_assert_eq!(rewrite(&value, HOST), Some(format!("{scheme}://{userinfo}{HOST}{port}{tail}")));
    }

    #[test]
    fn without_a_loopback_host_nothing_changes(
        before in "([a-z]{1,6}://)?(\\PC{0,8}@)?",
        host in "[a-z0-9.-]{0,12}|\\[[0-9a-f:.]{0,20}\\]|[0-9x]{1,3}(\\.[0-9]{1,3}){0,3}",
        after in "(:[0-9]{0,5})?([/?#]\\PC{0,20})?",
    ) {
        prop_assume!(!is_loopback(&host) && !before.contains("localhost"));
        prop_assert_eq!(rewrite(&format!("{before}{host}{after}"), HOST), None);
    }

    #[test]
    fn what_was_rewritten_has_no_loopback_host_left(value in "[a-z]{1,3}://([^/]{0,6}@)?(localhost|127.0.0.1|a|\\[::1\\]|[,:@0-9]){0,6}\\PC{0,9}") {
        if let Some(rewritten) = rewrite(&value, HOST) {
            prop_assert_eq!(rewrite(&rewritten, HOST), None);
        }
    }
}
