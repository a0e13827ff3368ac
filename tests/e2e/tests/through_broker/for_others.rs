//! The repository of somebody who may start runs on a service, and nothing else: it is fetched from public hosts, with nothing
//! of the operator's own, unless the operator listed it.

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cofferdam_e2e::{Service, processes};
use cofferdam_test_marks::once;
use rustix::process::Signal;
use serde_json::json;

use crate::through_broker::git::Forge;

/// A service of this machine that no caller is to reach, and how often somebody did.
fn canary() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("0.0.0.0:0").expect("a free port");
    let port = listener.local_addr().expect("a socket has an address").port();
    let reached = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&reached);
    std::thread::spawn(move || {
        while listener.accept().is_ok() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, reached)
}

/// Has everything that the fixture does done by a key that may start runs.
fn as_caller(forge: &mut Forge, service: &Service) {
    let made =
        forge.fixture.cofferdam(["keys", "create", "--name", "ci", "--scopes", "run,read", "--json"]).json();
    forge.fixture.set_env("COFFERDAM_API_KEY", made["key"].as_str().expect("a text"));
    forge.fixture.set_env("COFFERDAM_SERVER", &service.url());
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_does_not_have_the_node_fetch_from_its_own_machine() {
    let mut forge = Forge::open().await;
    let (port, reached) = canary();
    // A name that the machine's own resolver knows too, which git would ask.
    let machine = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
    forge.outside.names.set(&machine, &["127.0.0.1"]);
    let service = Service::start(&forge.fixture, &[]);
    as_caller(&mut forge, &service);
    let run = forge.fixture.run(&["--repo", &format!("https://{machine}:{port}/team/app.git")], "true");
    assert_eq!(run.outcome(), "failed/repository", "{}", run.stderr);
    assert!(run.stderr.contains("which is not a public address"), "{}", run.stderr);
    for address in ["ssh://git@git.test/team/app", "git://git.test/team/app", "git@git.test:team/app"] {
        let refused = forge.fixture.run(&["--repo", address], "true");
        assert_eq!(refused.code, Some(3), "{address}: {}", refused.stderr);
        assert!(refused.stderr.contains("this address is not allowed"), "{address}: {}", refused.stderr);
    }
    assert_eq!(reached.load(Ordering::SeqCst), 0, "the canary was reached");
    service.stop();
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_that_the_operator_listed_is_fetched_by_its_name_with_nothing_of_the_operators_own() {
    let mut forge = Forge::open().await;
    let host = format!("git.test:{}", forge.host.address().port());
    forge.set(&json!({
        "service": { "allowed_repos": [format!("https://{host}/team/*")] },
        "git": { "credentials": [{ "host": host, "path": "team/app", "token_env": "COFFERDAM_GIT_TOKEN" }] },
    }));
    // Whoever reads it would ask another host, and run a program of the operator's.
    let left = forge.fixture.path("asked");
    let config = format!(
        "[url \"https://127.0.0.1:1/\"]\n\tinsteadOf = https://\n[credential]\n\thelper = \"!touch {}\"\n",
        left.display()
    );
    fs::write(forge.fixture.home().join(".gitconfig"), config).expect("a new file");
    let service = Service::start(&forge.fixture, &[]);
    as_caller(&mut forge, &service);
    let run = forge.fixture.run(&["--repo", &forge.url("app")], "cat README.md");
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    assert!(forge.got_token() && !left.exists());
    // The same host, and a repository that there is no token for: the operator's helper is not asked either.
    let run = forge.fixture.run(&["--repo", &forge.url("other")], "true");
    assert_eq!(run.outcome(), "failed/repository", "{}", run.stderr);
    assert!(!left.exists());
    service.stop();
}

/// The attack: a host that sends what makes git do as it says. So git reads it where it can do nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_git_that_reads_a_strangers_repository_is_in_a_sandbox_of_its_own() {
    let mut forge = Forge::open().await;
    // Whoever comes here waits for the first word of TLS.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let host = format!("git.test:{}", silent.local_addr().expect("a socket has an address").port());
    forge.set(&json!({ "service": { "allowed_repos": [format!("https://{host}/team/*")] } }));
    let service = Service::start(&forge.fixture, &[]);
    as_caller(&mut forge, &service);
    let run = forge.fixture.start(&["--repo", &format!("https://{host}/team/app.git")], "true");
    let _connected = silent.accept().expect("a connection");
    let is_git = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.starts_with("git-remote-http")
    };
    let git = processes::descendants_of(service.pid()).into_iter().find(is_git).expect("git fetches");
    for kind in ["user", "mnt", "pid", "net", "ipc", "uts"] {
        let of = |process: &str| fs::read_link(format!("/proc/{process}/ns/{kind}")).expect("a namespace");
        assert_ne!(of(&git.to_string()), of("self"), "{kind}");
    }
    let status = fs::read_to_string(format!("/proc/{git}/status")).expect("the process lives");
    for line in ["Seccomp:\t2", "NoNewPrivs:\t1", "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000"] {
        assert!(status.lines().any(|one| one == line), "{line}: {status}");
    }
    assert!(!status.lines().any(|line| line.starts_with("Uid:\t0\t")), "git is root: {status}");
    run.signal(Signal::INT);
    let ended = run.finish();
    assert_eq!(ended.outcome(), "cancelled", "{}", ended.stderr);
    assert!(!processes::is_alive(git), "git goes with the run that nobody waits for");
    service.stop();
}

/// What an older fetch has made is brought up to date, and what is checked out already is not fetched again.
#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_strangers_repository_is_brought_up_to_date_and_a_commit_that_is_there_needs_no_host() {
    let mut forge = Forge::open().await;
    let host = format!("git.test:{}", forge.host.address().port());
    forge.set(&json!({
        "service": { "allowed_repos": [format!("https://{host}/team/*")] },
        "git": { "credentials": [{ "host": host, "path": "team/app", "token_env": "COFFERDAM_GIT_TOKEN" }] },
    }));
    let service = Service::start(&forge.fixture, &[]);
    as_caller(&mut forge, &service);
    let url = forge.url("app");
    let inside = "git rev-parse HEAD; git status --short; git log --oneline | wc -l; git branch --all --format='%(refname)'";
    let first = forge.fixture.run(&["--repo", &url], inside);
    assert_eq!(first.outcome(), "succeeded", "{}", first.stderr);
    let is_commit = |line: &&str| line.len() == 40 && line.bytes().all(|b| b.is_ascii_hexdigit());
    let commit = |said: &str| said.lines().find(is_commit).expect("a commit").to_owned();
    let before = commit(&forge.said(&first));
    forge.fixture.write("new.txt", "new");
    forge.fixture.git(&["add", "."]);
    forge.fixture.git(&["commit", "--quiet", "--message=new"]);
    let bare = forge.bare().display().to_string();
    forge.fixture.git(&["push", "--quiet", &bare, "HEAD:main", "HEAD:refs/heads/other"]);
    let second = forge.fixture.run(&["--repo", &url], inside);
    let said = forge.said(&second);
    assert_ne!(commit(&said), before, "{said}");
    assert!(said.contains("refs/remotes/origin/other"), "{said}");
    let unknown = forge.fixture.run(&["--repo", &url, "--ref", "othr"], "true");
    assert_eq!(unknown.outcome(), "failed/repository", "{}", unknown.stderr);
    assert!(unknown.stderr.contains("did you mean other"), "{}", unknown.stderr);
    let asked = forge.host.seen().len();
    let third = forge.fixture.run(&["--repo", &url, "--ref", &before], "git rev-parse HEAD; ls");
    assert_eq!(third.outcome(), "succeeded", "{}", third.stderr);
    assert!(commit(&forge.said(&third)) == before && !forge.said(&third).contains("new.txt"));
    let again = forge.fixture.run(&["--repo", &url, "--ref", &before], "git rev-parse HEAD");
    assert_eq!(again.outcome(), "succeeded", "{}", again.stderr);
    assert!(forge.host.seen().len() > asked, "the commit alone was not checked out before");
    let asked = forge.host.seen().len();
    let again = forge.fixture.run(&["--repo", &url, "--ref", &before], "git rev-parse HEAD");
    assert_eq!(again.outcome(), "succeeded", "{}", again.stderr);
    assert_eq!(forge.host.seen().len(), asked);
    service.stop();
}
