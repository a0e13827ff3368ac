use std::path::{Path, PathBuf};
use std::process::Output;

use cofferdam_core::{Agent, AttemptRef, EventType, LocalUrls, RepoUrl, RunId, Vendor};
use cofferdam_local_servers::GitHost;
use tokio::net::{TcpListener, UnixListener};
use tokio::process::Command;
use tokio::sync::Semaphore;

use super::*;
use crate::accept::{Behind, accept};
use crate::options::{Bounds, Locked, PriceTable, Secrets, Upstream};
use crate::places::Places;
use crate::recorder::Recorder;
use crate::rules::Rules;
use crate::test_ledger::TestLedger;

/// `x-access-token:a-token-of-ours`.
const AUTHORIZATION: &str = "Basic eC1hY2Nlc3MtdG9rZW46YS10b2tlbi1vZi1vdXJz";

struct Token;

impl Secrets for Token {
    fn upstream(&self, _: Vendor, _: Option<Agent>) -> Result<Upstream, Locked> {
        Err(Locked::NoKey)
    }

    /// As the caller's would: not for everybody, and for an `origin` only if its repository was trusted.
    fn git(&self, repository: &GitRepository<'_>) -> Result<GitCredential, NoGitCredential> {
        if repository.url.as_str().contains("/else/") {
            return Err(NoGitCredential::NoToken);
        }
        if repository.origin_of.is_some_and(|root| root != Path::new("/trusted")) {
            return Err(NoGitCredential::Unnamed);
        }
        Ok(GitCredential { user: "x-access-token".to_owned(), token: "a-token-of-ours".to_owned() })
    }
}

/// A git host, a broker in front of it, and a client that reaches nothing but the broker.
struct Fixture {
    folder: tempfile::TempDir,
    host: GitHost,
    gateway: String,
    serving: Arc<Served>,
    ledger: Arc<TestLedger>,
}

impl Fixture {
    async fn new(push: Option<&str>) -> Self {
        Self::serving("/team/app.git", push).await
    }

    async fn serving(path: &str, push: Option<&str>) -> Self {
        Self::serving_origin(path, push, None).await
    }

    async fn serving_origin(path: &str, push: Option<&str>, origin_of: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        for name in ["team/app.git", "team/other.git", "else/app.git"] {
            make_repository(&root.join(name)).await;
        }
        let host = GitHost::start(&root, AUTHORIZATION).await;
        let ledger = Arc::new(TestLedger::default());
        let serving = serving(&host, path, push, origin_of, Arc::clone(&ledger));
        let socket = UnixListener::bind(folder.path().join("egress.sock")).unwrap();
        tokio::spawn(accept(
            Arc::clone(&serving),
            socket,
            Behind::Gateway,
            Places::new(64, &Arc::new(Semaphore::new(64))),
        ));
        let gateway = relay(folder.path().join("egress.sock")).await;
        Self { folder, host, gateway, serving, ledger }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/git/{}{path}", self.gateway, self.host.address())
    }

    async fn git(&self, folder: &str, arguments: &[&str]) -> Output {
        git(&self.folder.path().join(folder), arguments).await
    }

    /// A clone with one commit more, at this branch.
    async fn clone_and_commit(&self, branch: &str, bytes: usize) {
        succeeds(&self.git(".", &["clone", "-q", &self.url("/team/app.git"), "work"]).await);
        succeeds(&self.git("work", &["checkout", "-q", "-b", branch]).await);
        // Not compressible, so that the pack is as large as the file.
        let noise: Vec<u8> = (0..bytes as u64)
            .map(|i| {
                (i.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
                    >> 56) as u8
            })
            .collect();
        std::fs::write(self.folder.path().join("work/new"), noise).unwrap();
        succeeds(&self.git("work", &["add", "."]).await);
        succeeds(&self.git("work", &["commit", "-q", "-m", "new"]).await);
    }

    /// Whether something of the repository was refused for this reason, as its events tell.
    async fn wrote_refusal(&self, reason: &str) -> bool {
        self.serving.recorder.finish(tokio::spawn(async {})).await;
        let events = self.ledger.events.lock().unwrap();
        events.iter().any(|event| {
            event.event_type == EventType::EgressRefused
                && event.data["kind"] == "git"
                && event.data["reason"].as_str().is_some_and(|text| text.contains(reason))
        })
    }

    async fn branches(&self) -> String {
        let output = self.git("root/team/app.git", &["branch", "--format=%(refname:short)"]).await;
        String::from_utf8(output.stdout).unwrap()
    }
}

fn serving(
    host: &GitHost,
    path: &str,
    push: Option<&str>,
    origin_of: Option<&str>,
    ledger: Arc<TestLedger>,
) -> Arc<Served> {
    let options = Arc::new(Options {
        secrets: Arc::new(Token),
        name_servers: vec![],
        prices: PriceTable::default(),
        bounds: Bounds::default(),
    });
    let dialer = Dialer::new(&[], options.bounds.connect_time);
    let attempt = AttemptRef { run: RunId::new(1, 2), number: 1 };
    let at = host.address().to_string();
    let repository = Repository { host: at.parse().unwrap(), path: path.to_owned() };
    let url = RepoUrl::parse(&format!("https://{at}{path}"), LocalUrls::Refuse).unwrap();
    let grant = GitGrant { url, push: push.map(str::to_owned), origin_of: origin_of.map(PathBuf::from) };
    let route = Route { repository, grant, scheme: "http", options, dialer: dialer.clone() };
    Arc::new(Served {
        attempt: attempt.clone(),
        bounds: Bounds::default(),
        dialer,
        rules: Rules::new(vec![at.parse().unwrap()]),
        proxies: true,
        model: None,
        git: Some(route),
        recorder: Recorder::new(attempt, ledger),
        retiring: tokio::sync::watch::Sender::new(false),
    })
}

/// The port on the sandbox's loopback that leads to the socket.
async fn relay(socket: PathBuf) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut broker = tokio::net::UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut broker).await });
        }
    });
    address
}

async fn make_repository(path: &Path) {
    std::fs::create_dir_all(path).unwrap();
    succeeds(&git(path, &["init", "-q", "--bare", "-b", "main"]).await);
    succeeds(&git(path, &["config", "http.receivepack", "true"]).await);
    let tree = git(path, &["mktree"]).await;
    let tree = String::from_utf8(tree.stdout).unwrap();
    let commit = git(path, &["commit-tree", "-m", "first", tree.trim()]).await;
    let commit = String::from_utf8(commit.stdout).unwrap();
    succeeds(&git(path, &["update-ref", "refs/heads/main", commit.trim()]).await);
}

async fn git(folder: &Path, arguments: &[&str]) -> Output {
    Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "credential.helper="])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("http_proxy")
        .env_remove("HTTP_PROXY")
        .stdin(std::process::Stdio::null())
        .output()
        .await
        .unwrap()
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn fails_with(output: &Output, words: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains(words), "{stderr}");
}

#[tokio::test]
async fn a_private_repository_is_cloned_with_a_token_that_the_client_never_has() {
    let fixture = Fixture::new(None).await;
    let url = fixture.url("/team/app").replace("://", "://agent:own-password@");
    succeeds(
        &fixture
            .git(".", &["-c", "http.extraHeader=Authorization: Bearer stolen", "clone", "-q", &url, "work"])
            .await,
    );
    let config = std::fs::read_to_string(fixture.folder.path().join("work/.git/config")).unwrap();
    assert!(!config.contains("a-token-of-ours"), "{config}");
    let seen = fixture.host.seen();
    assert!(seen.len() >= 2);
    for request in seen.iter() {
        let credentials: Vec<_> = request.headers.get_all(header::AUTHORIZATION).iter().collect();
        assert_eq!(credentials, [AUTHORIZATION]);
        assert!(request.uri.path().starts_with("/team/app.git/"), "{}", request.uri);
    }
}

#[tokio::test]
async fn the_branch_of_the_run_is_pushed_small_and_large() {
    for bytes in [10, 3 << 20] {
        let fixture = Fixture::new(Some("work")).await;
        fixture.clone_and_commit("work", bytes).await;
        succeeds(&fixture.git("work", &["push", "-q", "origin", "work"]).await);
        assert_eq!(fixture.branches().await, "main\nwork\n");
    }
}

#[tokio::test]
async fn another_branch_is_refused_in_words_that_git_shows() {
    for bytes in [10, 3 << 20] {
        let fixture = Fixture::new(Some("work")).await;
        fixture.clone_and_commit("evil", bytes).await;
        let output = fixture.git("work", &["push", "origin", "evil", "evil:work"]).await;
        fails_with(&output, "this run may push refs/heads/work and not refs/heads/evil");
        fails_with(&fixture.git("work", &["push", "origin", "evil:refs/tags/work"]).await, "remote rejected");
        assert_eq!(fixture.branches().await, "main\n");
        assert!(fixture.wrote_refusal("refs/heads/evil").await);
    }
}

#[tokio::test]
async fn the_branch_is_not_deleted() {
    let fixture = Fixture::new(Some("main")).await;
    succeeds(&fixture.git(".", &["clone", "-q", &fixture.url("/team/app.git"), "work"]).await);
    fails_with(&fixture.git("work", &["push", "origin", ":main"]).await, "may not delete");
    assert_eq!(fixture.branches().await, "main\n");
}

#[tokio::test]
async fn a_run_that_may_not_push_is_told_what_to_type() {
    let fixture = Fixture::new(None).await;
    fixture.clone_and_commit("work", 10).await;
    fails_with(&fixture.git("work", &["push", "origin", "work"]).await, "--push BRANCH");
    assert!(fixture.wrote_refusal("may not push").await);
}

#[tokio::test]
async fn another_repository_of_the_same_host_is_refused() {
    let fixture = Fixture::new(None).await;
    let output = fixture.git(".", &["clone", "-q", &fixture.url("/team/other.git"), "other"]).await;
    fails_with(&output, "only fetch and push of");
    assert!(fixture.wrote_refusal("only fetch and push of").await);
    assert!(fixture.host.seen().is_empty());
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let fixture = Fixture::serving("/moved/app", None).await;
    let output = fixture.git(".", &["clone", "-q", &fixture.url("/moved/app"), "moved"]).await;
    fails_with(&output, "points to another address");
    assert_eq!(fixture.host.seen().len(), 1);
}

#[tokio::test]
async fn where_an_origin_leads_that_nobody_trusted_no_token_is_sent() {
    for (path, origin_of, words) in [
        (
            "/team/app.git",
            Some("/downloaded"),
            "none is sent where an untrusted `origin` leads; type `cofferdam trust`",
        ),
        (
            "/else/app.git",
            None,
            "there is none for this repository; name a token for it outside: `git.credentials`",
        ),
    ] {
        let fixture = Fixture::serving_origin(path, None, origin_of).await;
        fails_with(&fixture.git(".", &["clone", "-q", &fixture.url(path), "work"]).await, words);
        let seen = fixture.host.seen();
        assert!(
            !seen.is_empty() && seen.iter().all(|head| !head.headers.contains_key(header::AUTHORIZATION))
        );
    }
    let fixture = Fixture::serving_origin("/team/app.git", None, Some("/trusted")).await;
    succeeds(&fixture.git(".", &["clone", "-q", &fixture.url("/team/app.git"), "work"]).await);
}
