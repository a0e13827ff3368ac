//! A private repository over https: its token stays outside, and the broker serves it and nothing beside it.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use cofferdam_e2e::{Finished, Fixture, Outside};
use cofferdam_local_servers::GitHost;
use cofferdam_test_marks::once;
use serde_json::{Value, json};

const TOKEN: &str = "a-token-that-stays-outside";
/// `x-access-token:a-token-that-stays-outside`.
const AUTHORIZATION: &str = "Basic eC1hY2Nlc3MtdG9rZW46YS10b2tlbi10aGF0LXN0YXlzLW91dHNpZGU=";
const HOST: &str = "git.test";
const COMMIT: &str = "git config user.name a && git config user.email a@localhost && \
    echo new > new.txt && git add new.txt && git commit --quiet --message=new";

/// A git host with two private repositories, and a clone of the first.
pub(crate) struct Forge {
    pub(crate) fixture: Fixture,
    pub(crate) host: GitHost,
    pub(crate) outside: Outside,
}

impl Forge {
    pub(crate) async fn open() -> Self {
        let mut fixture = Fixture::new();
        let outside = Outside::around(&fixture).await;
        outside.names.set(HOST, &["127.0.0.1"]);
        let root = fixture.path("root");
        fs::create_dir_all(root.join("team")).expect("a new folder");
        for name in ["app", "other"] {
            let bare = root.join(format!("team/{name}.git"));
            fixture.git(&["clone", "--quiet", "--bare", ".", &bare.display().to_string()]);
            let set = ["config", "http.receivepack", "true"];
            assert!(fixture.git_command(&bare).args(set).status().expect("git is installed").success());
        }
        let host = GitHost::start_https(&root, AUTHORIZATION, &outside.authority, &[HOST, "127.0.0.1"]).await;
        let trusted = fixture.path("authority.crt").display().to_string();
        // The broker's own https, and that of the git that fetches for the caller.
        fixture.set_env("SSL_CERT_FILE", &trusted);
        fixture.set_env("GIT_SSL_CAINFO", &trusted);
        fixture.set_env("COFFERDAM_GIT_TOKEN", TOKEN);
        let forge = Self { fixture, host, outside };
        let port = forge.host.address().port();
        forge.set_credentials(&json!([
            { "host": format!("{HOST}:{port}"), "path": "team/app", "token_env": "COFFERDAM_GIT_TOKEN" },
            { "host": format!("127.0.0.1:{port}"), "token_env": "COFFERDAM_GIT_TOKEN" },
        ]));
        forge.fixture.git(&["remote", "add", "origin", &forge.url("app")]);
        forge
    }

    /// What `git.credentials` of the caller's settings says.
    pub(crate) fn set_credentials(&self, credentials: &Value) {
        self.set(&json!({ "git": { "credentials": credentials } }));
    }

    /// The caller's settings, with the name server of the fixture.
    pub(crate) fn set(&self, settings: &Value) {
        let mut settings = settings.clone();
        settings["egress"] = json!({ "name_servers": [self.outside.names.address()] });
        fs::write(self.fixture.state().join("settings.json"), settings.to_string()).expect("a new file");
    }

    /// Whether the host was ever sent a credential.
    pub(crate) fn got_token(&self) -> bool {
        self.host.seen().iter().any(|head| head.headers.contains_key("authorization"))
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("https://{HOST}:{}/team/{name}.git", self.host.address().port())
    }

    pub(crate) fn bare(&self) -> PathBuf {
        self.fixture.path("root/team/app.git")
    }

    /// The broker's names lead to this machine, which has to be allowed; the git host itself is not.
    pub(crate) fn run(&self, flags: &[&str], script: &str) -> Finished {
        let address = self.host.address().to_string();
        let flags = [["--allow", address.as_str()].as_slice(), flags].concat();
        self.fixture.run(&flags, &script.replace("OTHER", &self.url("other")))
    }

    /// Everything that the program said.
    pub(crate) fn said(&self, run: &Finished) -> String {
        let events = self.fixture.events(&run.run_id());
        let texts = events.iter().filter_map(|event| event["data"]["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn branches(&self) -> String {
        let list = ["branch", "--format=%(refname:short) %(objectname)"];
        let output = self.fixture.git_command(&self.bare()).args(list).output().expect("git is installed");
        String::from_utf8(output.stdout).expect("names are text")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_runs_own_repository_is_cloned_with_a_token_that_is_nowhere_inside() {
    let forge = Forge::open().await;
    let run = forge.run(
        &[],
        "git fetch origin && git clone --quiet \"$(git config remote.origin.url)\" ../tmp/again && \
         cat ../tmp/again/README.md && cat /proc/[0-9]*/environ ../tmp/again/.git/config | tr '\\0' '\\n'",
    );
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    let said = forge.said(&run);
    assert!(said.contains("hello") && said.contains("HOME="), "{said}");
    assert_nowhere(&said);
    assert_nowhere(&run.stderr);
    assert_token_is_not_below(&forge.fixture.state());
    assert!(forge.host.seen().len() >= 4);
    let events = forge.fixture.events(&run.run_id());
    let allowed = events.iter().find(|event| event["type"] == "egress.allowed").expect("an event");
    assert_eq!(allowed["data"]["kind"], "git");
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_repository_of_the_same_host_is_refused() {
    let forge = Forge::open().await;
    // The second address begins like the run's own, so it reaches the broker's route and not the proxy.
    let run = forge.run(
        &[],
        "git clone OTHER ../tmp/other; git clone \"$(git config remote.origin.url | sed s/app/apple/)\" ../tmp/apple",
    );
    assert_eq!(run.outcome(), "failed/agent", "{}", run.stderr);
    assert!(forge.host.seen().is_empty());
    let said = forge.said(&run);
    assert!(said.contains("CONNECT tunnel failed, response 403"), "{said}");
    assert!(said.contains("remote: cofferdam: only fetch and push of /git/git.test:"), "{said}");
    let host = format!("{HOST}:{}", forge.host.address().port());
    assert!(run.stderr.contains(&format!("--allow {host}")), "{}", run.stderr);
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_git_host_at_a_private_address_is_refused_with_the_address_to_allow() {
    let forge = Forge::open().await;
    let run = forge.fixture.run(&["--network", "sealed"], "git fetch origin");
    assert_eq!(run.outcome(), "failed/agent", "{}", run.stderr);
    assert!(forge.host.seen().is_empty());
    let said = forge.said(&run);
    let words = format!("which is not a public address; add --allow {} ", forge.host.address());
    assert!(said.contains("remote: cofferdam: git.test:") && said.contains(&words), "{said}");
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_pushed_unless_it_was_asked_for() {
    let forge = Forge::open().await;
    let before = forge.branches();
    let run = forge.run(&[], &format!("{COMMIT} && git push origin HEAD:work"));
    assert_eq!(run.outcome(), "failed/agent", "{}", run.stderr);
    let said = forge.said(&run);
    assert!(said.contains("remote: cofferdam: this run may not push; start it with --push BRANCH"), "{said}");
    assert_eq!(forge.branches(), before);
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_branch_that_was_asked_for_is_pushed_and_no_other() {
    let forge = Forge::open().await;
    let main = forge.branches();
    let run = forge.run(
        &["--push", "work"],
        &format!(
            "{COMMIT}; git push origin HEAD:work || exit 9; git push origin HEAD:elsewhere && exit 1; \
             git push --force origin HEAD:main && exit 2; git push origin --delete work && exit 3; \
             git push origin HEAD:refs/tags/v1 && exit 4; exit 0"
        ),
    );
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    let said = forge.said(&run);
    for refused in ["refs/heads/elsewhere", "refs/heads/main", "refs/tags/v1"] {
        let words = format!("cofferdam: this run may push refs/heads/work and not {refused}");
        assert!(said.contains(&words), "{words}: {said}");
    }
    assert!(said.contains("cofferdam: this run may not delete refs/heads/work"), "{said}");
    let branches = forge.branches();
    let names: Vec<&str> = branches.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["main", "work"]);
    assert!(branches.contains(main.trim()), "main was moved: {branches}");
    assert_token_is_not_below(&forge.fixture.state());
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_address_is_fetched_with_the_token_and_served_inside() {
    let forge = Forge::open().await;
    // The caller's own git asks the machine's resolver, which does not know the name.
    let url = format!("https://{}/team/app.git", forge.host.address());
    // A helper that keeps what git hands it would leave the token on the disk.
    let helper = "[credential]\n\thelper = \"!f() { cat >> $HOME/kept; }; f\"\n";
    fs::write(forge.fixture.home().join(".gitconfig"), helper).unwrap();
    let run = forge.run(&["--repo", &url], "cat README.md && git fetch origin");
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    assert!(forge.said(&run).contains("hello"));
    assert_token_is_not_below(&forge.fixture.state());
    assert_token_is_not_below(&forge.fixture.home());
    // The mirror is there by now and is brought up to date.
    let again = forge.run(&["--repo", &url, "--ref", "main"], "cat README.md");
    assert_eq!(again.outcome(), "succeeded", "{}", again.stderr);
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_private_address_without_a_token_says_what_to_set() {
    let mut forge = Forge::open().await;
    forge.fixture.set_env("COFFERDAM_GIT_TOKEN", "");
    let url = format!("https://{}/team/app.git", forge.host.address());
    let run = forge.run(&["--repo", &url], "true");
    assert_eq!(run.outcome(), "failed/repository", "{}", run.stderr);
    let words = format!("export COFFERDAM_GIT_HOST={} COFFERDAM_GIT_TOKEN=TOKEN", forge.host.address());
    assert!(run.stderr.contains(&words), "{}", run.stderr);
}

fn assert_nowhere(text: &str) {
    let encoded = base64::engine::general_purpose::STANDARD.encode(TOKEN);
    let pair = AUTHORIZATION.strip_prefix("Basic ").expect("it is basic");
    for secret in [TOKEN, encoded.as_str(), pair] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

fn assert_token_is_not_below(folder: &Path) {
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let kind = entry.file_type().expect("a file");
            if kind.is_dir() {
                open.push(entry.path());
            } else if kind.is_file() {
                assert_nowhere(&String::from_utf8_lossy(&fs::read(entry.path()).expect("a file")));
            }
        }
    }
}
