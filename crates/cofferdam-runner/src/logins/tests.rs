use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cofferdam_agent::LoginProblem;
use cofferdam_core::{Agent, Credential, Login, Vendor};
use serde_json::{Value, json};

use super::*;

const NOW: u64 = 1_800_000_000_000;

struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        path
    }

    fn logins(&self) -> Logins {
        Logins::new(LoginPlaces::of(Some(self.0.path()), |_| None))
    }

    fn claude(&self) -> Result<OpenLogin, LoginError> {
        self.logins().current(Agent::ClaudeCode, Vendor::Anthropic, NOW)
    }
}

fn claude(token: &str, expires_at: u64) -> String {
    json!({ "claudeAiOauth": {
        "accessToken": token, "refreshToken": "sk-ant-ort01-refresh", "expiresAt": expires_at,
        "scopes": ["user:inference"], "subscriptionType": "max", "rateLimitTier": "default_max_5x",
    }, "mcpOAuth": { "x": { "accessToken": "other" } } })
    .to_string()
}

fn jwt(claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.c2lnbmF0dXJlLW9mLWl0", part(&json!({"alg": "RS256"})), part(claims))
}

fn chatgpt(exp: u64) -> String {
    let claims = json!({"https://api.openai.com/auth": {"chatgpt_plan_type": "pro"}});
    json!({ "OPENAI_API_KEY": null, "tokens": {
        "id_token": jwt(&claims), "access_token": jwt(&json!({"exp": exp})),
        "refresh_token": "rt_refresh-of-codex", "account_id": "acc-1",
    }, "last_refresh": "2026-01-01T00:00:00Z" })
    .to_string()
}

fn secret(open: &OpenLogin) -> &str {
    match &open.credential {
        Credential::ApiKey(secret) | Credential::Bearer(secret) => secret,
        Credential::ChatGpt { token, .. } => token,
    }
}

#[test]
fn a_login_of_claude_code_is_a_bearer_token_with_its_subscription() {
    let home = Home::new();
    assert_eq!(home.claude().unwrap_err(), LoginError::Missing { agent: Agent::ClaudeCode });
    let path = home.write(".claude/.credentials.json", claude("sk-ant-oat01-abc", NOW + 1));
    let open = home.claude().unwrap();
    assert!(open.credential == Credential::Bearer("sk-ant-oat01-abc".to_owned()));
    assert_eq!((open.path, open.expires_at_ms), (path, Some(NOW + 1)));
    let Login::ClaudeAi { subscription, rate_limit_tier } = open.login else { panic!("{:?}", open.login) };
    assert_eq!((subscription.as_deref(), rate_limit_tier.as_deref()), (Some("max"), Some("default_max_5x")));
}

#[test]
fn a_login_of_codex_is_a_key_or_a_subscription_with_its_account() {
    let home = Home::new();
    let current = || home.logins().current(Agent::Codex, Vendor::Openai, NOW);
    home.write(".codex/auth.json", r#"{"OPENAI_API_KEY": "sk-of-codex"}"#);
    assert!(current().unwrap().credential == Credential::ApiKey("sk-of-codex".to_owned()));
    assert_eq!(current().unwrap().login, Login::Key);
    home.write(".codex/auth.json", chatgpt(NOW / 1000 + 60));
    let open = current().unwrap();
    let Credential::ChatGpt { account, .. } = &open.credential else { panic!("{open:?}") };
    assert_eq!(account.as_deref(), Some("acc-1"));
    assert_eq!(open.login, Login::ChatGpt { plan: Some("pro".to_owned()) });
    home.write(".codex/auth.json", chatgpt(NOW / 1000));
    assert!(matches!(current(), Err(LoginError::Expired { .. })), "{:?}", current());
}

#[test]
fn of_opencode_keys_count_for_their_vendor_and_subscriptions_do_not() {
    let home = Home::new();
    let auth = json!({
        "anthropic": {"type": "oauth", "access": "a-token", "refresh": "r-token", "expires": NOW + 1},
        "openai": {"type": "api", "key": "sk-of-opencode"},
        "github-copilot": {"type": "oauth", "access": "x", "refresh": "y", "expires": 0},
    });
    home.write(".local/share/opencode/auth.json", auth.to_string());
    let current = |vendor| home.logins().current(Agent::OpenCode, vendor, NOW);
    assert_eq!(secret(&current(Vendor::Openai).unwrap()), "sk-of-opencode");
    let error = current(Vendor::Anthropic).unwrap_err();
    assert!(
        matches!(error, LoginError::Unusable { problem: Problem::Content(LoginProblem::Unsupported(_)), .. }),
        "{error}"
    );
    assert!(home.logins().secrets().contains(&"r-token".to_owned()));
}

#[test]
fn a_token_that_was_renewed_is_seen_by_the_next_question() {
    let home = Home::new();
    let logins = home.logins();
    let current = || logins.current(Agent::ClaudeCode, Vendor::Anthropic, NOW);
    home.write(".claude/.credentials.json", claude("first", NOW + 1));
    assert_eq!(secret(&current().unwrap()), "first");
    // In place, and by a rename, as the CLIs do it.
    home.write(".claude/.credentials.json", claude("other", NOW + 1));
    assert_eq!(secret(&current().unwrap()), "other");
    let new = home.write(".claude/new", claude("third", NOW + 1));
    fs::rename(new, home.0.path().join(".claude/.credentials.json")).unwrap();
    assert_eq!(secret(&current().unwrap()), "third");
}

#[test]
fn a_file_that_is_just_being_written_does_not_end_what_it_held() {
    let home = Home::new();
    let logins = home.logins();
    let current = || logins.current(Agent::ClaudeCode, Vendor::Anthropic, NOW);
    home.write(".claude/.credentials.json", claude("first", NOW + 1));
    current().unwrap();
    home.write(".claude/.credentials.json", &claude("second", NOW + 1)[..30]);
    assert_eq!(secret(&current().unwrap()), "first");
    home.write(".claude/.credentials.json", claude("second", NOW + 1));
    assert_eq!(secret(&current().unwrap()), "second");
    fs::remove_file(home.0.path().join(".claude/.credentials.json")).unwrap();
    assert_eq!(current().unwrap_err(), LoginError::Missing { agent: Agent::ClaudeCode });
}

#[test]
fn an_expired_token_opens_nothing_and_says_what_renews_it() {
    let home = Home::new();
    home.write(".claude/.credentials.json", claude("old", NOW));
    let error = home.claude().unwrap_err();
    assert!(matches!(error, LoginError::Expired { .. }));
    assert!(error.to_string().contains("has expired: type `claude -p hi` once"), "{error}");
}

#[test]
fn what_is_no_login_is_said_plainly_and_never_shown() {
    for garbage in
        ["", "not json", "[]", r#"{"claudeAiOauth": 7}"#, r#"{"claudeAiOauth": {"accessToken": "a\nb"}}"#]
    {
        let home = Home::new();
        home.write(".claude/.credentials.json", garbage);
        let error = home.claude().unwrap_err();
        assert!(
            matches!(error, LoginError::Unusable { problem: Problem::Content(LoginProblem::Malformed), .. }),
            "{garbage}: {error}"
        );
    }
    let home = Home::new();
    home.write(".claude/.credentials.json", vec![b' '; (1 << 20) + 1]);
    assert!(matches!(home.claude(), Err(LoginError::Unusable { problem: Problem::TooLarge, .. })));
    let home = Home::new();
    home.write(".claude/.credentials.json", r#"{"mcpOAuth": {}}"#);
    assert!(matches!(home.claude(), Err(LoginError::Missing { .. })), "somebody who has logged out");
}

#[test]
fn pipes_folders_devices_and_links_to_them_are_refused_and_nobody_waits_for_them() {
    type Lay = fn(&Path);
    let lay: [(&str, Lay); 5] = [
        ("a pipe", |path| {
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        }),
        ("a folder", |path| fs::create_dir(path).unwrap()),
        ("a device", |path| symlink("/dev/zero", path).unwrap()),
        ("a link to itself", |path| symlink(path.file_name().unwrap(), path).unwrap()),
        ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap())),
    ];
    for (what, lay) in lay {
        let home = Home::new();
        fs::create_dir(home.0.path().join(".claude")).unwrap();
        lay(&home.0.path().join(".claude/.credentials.json"));
        let error = home.claude().unwrap_err();
        assert!(matches!(error, LoginError::Unusable { .. }), "{what}: {error}");
    }
}

#[test]
fn a_link_counts_for_what_it_leads_to() {
    let home = Home::new();
    fs::create_dir(home.0.path().join(".claude")).unwrap();
    let link = home.0.path().join(".claude/.credentials.json");
    symlink("../dotfiles/claude.json", &link).unwrap();
    assert!(matches!(home.claude(), Err(LoginError::Missing { .. })), "it leads nowhere");
    let real = home.write("dotfiles/claude.json", claude("linked", NOW + 1));
    assert_eq!(secret(&home.claude().unwrap()), "linked");
    fs::set_permissions(&real, PermissionsExt::from_mode(0o666)).unwrap();
    assert!(matches!(home.claude(), Err(LoginError::Unusable { problem: Problem::OthersWrite, .. })));
}

#[test]
fn a_file_of_somebody_else_is_not_trusted() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give files away");
        return;
    }
    let home = Home::new();
    let path = home.write(".claude/.credentials.json", claude("theirs", NOW + 1));
    std::os::unix::fs::chown(path, Some(54_321), None).unwrap();
    assert!(matches!(home.claude(), Err(LoginError::Unusable { problem: Problem::Foreign, .. })));
}

#[test]
fn variables_move_the_folders_and_claude_codes_own_one_counts_for_both() {
    let home = Path::new("/home/me");
    let places = |set: &[(&str, &str)]| {
        let var = |name: &str| set.iter().find(|(it, _)| *it == name).map(|(_, path)| PathBuf::from(path));
        let places = LoginPlaces::of(Some(home), var);
        places.files(Agent::ClaudeCode).iter().map(|path| path.display().to_string()).collect::<Vec<_>>()
    };
    let usual = ["/home/me/.claude/.credentials.json", "/home/me/.config/claude/.credentials.json"];
    assert_eq!(places(&[]), usual);
    assert_eq!(places(&[("CLAUDE_AUTH_DIR", "/a")]), ["/a/.credentials.json", usual[1]]);
    assert_eq!(places(&[("CLAUDE_CONFIG_DIR", "/c")]), ["/c/.credentials.json"]);
    let both = [("CLAUDE_AUTH_DIR", "/a"), ("CLAUDE_CONFIG_DIR", "/c")];
    assert_eq!(places(&both), ["/a/.credentials.json", "/c/.credentials.json"]);
    let codex = |name: &'static str| {
        let places = LoginPlaces::of(Some(home), |it| (it == name).then(|| PathBuf::from("/x")));
        places.files(Agent::Codex).to_vec()
    };
    for name in ["CODEX_AUTH_DIR", "CODEX_HOME"] {
        assert_eq!(codex(name), [PathBuf::from("/x/auth.json")]);
    }
}

#[test]
fn the_second_place_counts_where_the_first_opens_nothing() {
    let home = Home::new();
    home.write(".claude/.credentials.json", claude("old", NOW));
    home.write(".config/claude/.credentials.json", claude("good", NOW + 1));
    assert_eq!(secret(&home.claude().unwrap()), "good");
    home.write(".config/claude/.credentials.json", "garbage");
    assert!(matches!(home.claude(), Err(LoginError::Expired { .. })), "the first problem is told");
}

#[test]
fn every_token_is_a_secret_and_no_common_beginning_is() {
    let home = Home::new();
    home.write(".claude/.credentials.json", claude("sk-ant-oat01-abc", NOW));
    home.write(".codex/auth.json", chatgpt(0));
    let secrets = home.logins().secrets();
    for secret in ["sk-ant-oat01-abc", "sk-ant-ort01-refresh", "rt_refresh-of-codex", "c2lnbmF0dXJlLW9mLWl0"]
    {
        assert!(secrets.iter().any(|it| it == secret), "{secret}");
    }
    assert!(!secrets.iter().any(|secret| secret.contains("eyJ")), "every such token begins so");
}

#[test]
fn nothing_shows_a_token() {
    let home = Home::new();
    home.write(".claude/.credentials.json", claude("sk-ant-oat01-abc", NOW + 1));
    assert!(!format!("{:?}", home.claude().unwrap()).contains("oat01"));
}
