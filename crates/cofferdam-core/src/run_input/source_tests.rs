use super::*;
use crate::run_input::test_machine::{Machine, may_name_path};

fn find(repo: &str) -> Result<Source, InputErrorKind> {
    find_source(Some(repo), None, LocalUrls::Refuse, InputSyntax::Fields, &may_name_path, &Machine::new())
        .map_err(|error| error.kind)
}

#[test]
fn a_short_name_is_an_owner_and_a_name_and_nothing_else() {
    let address = |repo| address(repo, LocalUrls::Refuse);
    for repo in ["owner/name", "o.w-n_er/na.me"] {
        assert_eq!(address(repo).unwrap().as_str(), format!("https://github.com/{repo}"));
    }
    for repo in
        ["name", "a/b/c", "../x", "-a/b", "a/.git", "", "a b/c", "file:///etc", "http://x/y", "ext::sh"]
    {
        assert_eq!(address(repo).unwrap_err().kind, InputErrorKind::RepoFormat, "{repo}");
    }
    assert_eq!(address("git@host.example:a/b").unwrap().as_str(), "git@host.example:a/b");
}

#[test]
fn addresses_that_run_programs_or_hold_a_password_are_refused() {
    for repo in ["ext::sh -c id", "--upload-pack=id", "http://host/a", "https://me:pw@host/a"] {
        let error = address(repo, LocalUrls::Allow).unwrap_err();
        assert!(!error.to_string().contains("pw@"), "{error}");
    }
    assert!(address("file:///srv/a", LocalUrls::Allow).is_ok());
}

#[test]
fn a_path_is_the_repository_around_it() {
    let found = find("/srv/a/deep").unwrap();
    assert!(found.is_here());
    assert_eq!(found, Source::Local { path: "/srv/a".into() });
    let machine = Machine::new();
    let (local, syntax) = (LocalUrls::Refuse, InputSyntax::Fields);
    let old = find_source(Some("/srv/a"), Some("v1"), local, syntax, &may_name_path, &machine);
    let Source::Git { url, reference } = old.unwrap() else { panic!("it is a commit") };
    assert_eq!((url.as_str(), reference.as_deref()), ("file:///srv/a", Some("v1")));
}

#[test]
fn whoever_may_not_name_a_path_does_not_learn_whether_it_is_there() {
    for repo in [
        "/home",
        "/home/nobody",
        "/srv/../home",
        "/srv/../home/nobody",
        "/srv/link",
        "/srv/link/me",
        "/srv/link/nobody",
        "/srv/link/nobody/x",
    ] {
        assert_eq!(find(repo).unwrap_err(), InputErrorKind::NotAllowed, "{repo}");
    }
    for repo in ["/srv/nothing", "/srv/plain", "/srv/a\0", "/srv/a/x/y"] {
        assert_eq!(find(repo).unwrap_err(), InputErrorKind::PathNotFound, "{repo}");
    }
}
