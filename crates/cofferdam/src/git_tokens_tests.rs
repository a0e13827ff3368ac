use cofferdam_core::{LocalUrls, RepoUrl};
use cofferdam_runner::Home;

use super::*;

fn tokens(env: &[(&str, &str)], credentials: &str, state: Option<&Path>) -> Result<GitTokens, Failure> {
    let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
    let settings = serde_json::from_str(&format!(r#"{{"credentials": {credentials}}}"#)).unwrap();
    GitTokens::of(&Caller { env, current_folder: "/".into() }, &settings, state)
}

fn url(text: &str) -> RepoUrl {
    RepoUrl::parse(text, LocalUrls::Refuse).unwrap()
}

fn opens(tokens: &GitTokens, address: &str) -> Option<String> {
    let found = tokens.find(&GitRepository { url: &url(address), origin_of: None });
    found.ok().map(|credential| format!("{}:{}", credential.user, credential.token))
}

#[test]
fn a_token_goes_to_its_own_host_alone() {
    let found = tokens(&[("GITHUB_TOKEN", "a"), ("GITLAB_TOKEN", "b")], "[]", None).unwrap();
    assert_eq!(opens(&found, "https://github.com/x/y").as_deref(), Some("x-access-token:a"));
    assert_eq!(opens(&found, "https://gitlab.com/x/y").as_deref(), Some("oauth2:b"));
    for elsewhere in
        ["https://github.com.evil.example/x", "https://github.com:8443/x", "https://evil.example/x"]
    {
        assert_eq!(opens(&found, elsewhere), None, "{elsewhere}");
    }
}

#[test]
fn our_own_token_goes_nowhere_without_its_host() {
    let unbound = tokens(&[("COFFERDAM_GIT_TOKEN", "secret")], "[]", None).unwrap();
    for address in ["https://evil.example/x", "https://github.com/x/y", "https://git.corp.example/team/app"] {
        assert_eq!(opens(&unbound, address), None, "{address}");
    }
    let env = [("COFFERDAM_GIT_TOKEN", "secret"), ("COFFERDAM_GIT_HOST", "git.corp.example/team")];
    let bound = tokens(&env, "[]", None).unwrap();
    assert_eq!(opens(&bound, "https://git.corp.example/team/app").as_deref(), Some("x-access-token:secret"));
    for address in ["https://git.corp.example/other/app", "https://evil.example/team/app"] {
        assert_eq!(opens(&bound, address), None, "{address}");
    }
    assert!(tokens(&[("COFFERDAM_GIT_HOST", "https://x")], "[]", None).is_err());
    assert_eq!(
        opens(&tokens(&[("COFFERDAM_GIT_HOST", "h.example")], "[]", None).unwrap(), "https://h.example/x"),
        None
    );
}

#[test]
fn the_settings_bind_tokens_to_further_hosts_and_go_first() {
    let credentials = r#"[
        {"host": "github.com", "path": "acme", "token_env": "ACME_TOKEN"},
        {"host": "ghe.example", "token_env": "GITHUB_TOKEN"},
        {"host": "gitlab.example:8443", "token_env": "GITLAB_TOKEN"},
        {"host": "unset.example", "token_env": "UNSET_TOKEN"}
    ]"#;
    let env = [("ACME_TOKEN", "acme"), ("GITHUB_TOKEN", "hub"), ("GITLAB_TOKEN", "lab")];
    let found = tokens(&env, credentials, None).unwrap();
    for (address, expected) in [
        ("https://github.com/acme/app.git", Some("x-access-token:acme")),
        ("https://github.com/other/app.git", Some("x-access-token:hub")),
        ("https://ghe.example/any/thing", Some("x-access-token:hub")),
        ("https://gitlab.example:8443/a", Some("oauth2:lab")),
        ("https://gitlab.example/a", None),
        ("https://unset.example/a", None),
    ] {
        assert_eq!(opens(&found, address).as_deref(), expected, "{address}");
    }
}

#[test]
fn an_origin_counts_once_it_was_trusted_or_the_settings_name_its_host() {
    let state = tempfile::tempdir().unwrap();
    let home = Home::open(state.path()).unwrap();
    let root = Path::new("/work/downloaded");
    let origin = url("https://github.com/victim/private");
    let env = [("GITHUB_TOKEN", "t"), ("COFFERDAM_GIT_TOKEN", "u"), ("COFFERDAM_GIT_HOST", "git.example")];
    let found = tokens(&env, "[]", Some(state.path())).unwrap();
    let find = |found: &GitTokens, url: &RepoUrl| {
        found.find(&GitRepository { url, origin_of: Some(root) }).map(|credential| credential.token)
    };
    assert_eq!(find(&found, &origin), Err(NoGitCredential::Unnamed));
    assert_eq!(find(&found, &url("https://git.example/x")), Err(NoGitCredential::Unnamed));
    assert_eq!(find(&found, &url("https://evil.example/x")), Err(NoGitCredential::NoToken));

    TrustRecord::trust_origin(&home, root, &origin, 7).unwrap();
    assert_eq!(find(&found, &origin).as_deref(), Ok("t"));
    // One that was changed afterwards is another one, and so is that of another repository.
    assert_eq!(find(&found, &url("https://github.com/victim/other")), Err(NoGitCredential::Unnamed));
    let elsewhere = GitRepository { url: &origin, origin_of: Some(Path::new("/work/other")) };
    assert!(found.find(&elsewhere).is_err());
    TrustRecord::revoke_origin(&home, root).unwrap();
    assert_eq!(find(&found, &origin), Err(NoGitCredential::Unnamed));

    let credentials = r#"[{"host": "github.com", "path": "victim", "token_env": "GITHUB_TOKEN"}]"#;
    let named = tokens(&env, credentials, Some(state.path())).unwrap();
    assert_eq!(find(&named, &origin).as_deref(), Ok("t"));
    std::fs::write(state.path().join("trust.json"), "not a record").unwrap();
    assert_eq!(find(&found, &origin), Err(NoGitCredential::Unnamed));
}
