//! Which hosts and repositories the caller's git token goes to. The git host is the attacker's: it asks everybody for a
//! credential, and keeps what it is sent.

use cofferdam_test_marks::once;
use serde_json::json;

use crate::through_broker::git::Forge;

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_goes_to_no_host_that_nobody_named_for_it() {
    let mut forge = Forge::open().await;
    let url = format!("https://{}/team/app.git", forge.host.address());
    forge.set_credentials(&json!([]));
    let run = forge.run(&["--repo", &url], "true");
    assert_eq!(run.outcome(), "failed/repository", "{}", run.stderr);
    let words = "COFFERDAM_GIT_TOKEN is not used, because no host is named that it is for";
    assert!(run.stderr.contains(words), "{}", run.stderr);
    // One of another host, and one of another path at this host.
    forge.fixture.set_env("COFFERDAM_GIT_HOST", "git.corp.example");
    assert_eq!(forge.run(&["--repo", &url], "true").outcome(), "failed/repository");
    forge.fixture.set_env("COFFERDAM_GIT_HOST", &format!("{}/elsewhere", forge.host.address()));
    assert_eq!(forge.run(&["--repo", &url], "true").outcome(), "failed/repository");
    assert!(!forge.host.seen().is_empty() && !forge.got_token());
    // Its own host gets it, for the fetch outside and for that inside.
    forge.fixture.set_env("COFFERDAM_GIT_HOST", &format!("{}/team", forge.host.address()));
    let run = forge.run(&["--repo", &url], "cat README.md && git fetch origin");
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    assert!(forge.got_token());
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_origin_of_a_local_repository_gets_no_token_before_it_was_trusted() {
    let mut forge = Forge::open().await;
    forge.set_credentials(&json!([]));
    let port = forge.host.address().port();
    forge.fixture.set_env("COFFERDAM_GIT_HOST", &format!("git.test:{port}"));
    let run = forge.run(&["--push", "work"], "git fetch origin");
    assert_eq!(run.outcome(), "failed/agent", "{}", run.stderr);
    assert!(run.stderr.contains("to push `work` type `cofferdam trust` first"), "{}", run.stderr);
    let said = forge.said(&run);
    assert!(
        said.contains("none is sent where an untrusted `origin` leads; type `cofferdam trust`"),
        "{said}"
    );
    assert!(!forge.host.seen().is_empty() && !forge.got_token());

    let trusted = forge.fixture.cofferdam(["trust"]);
    assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    let shown = String::from_utf8_lossy(&trusted.stdout).into_owned();
    assert!(shown.contains(&format!("origin https://git.test:{port}/team/app.git\n")), "{shown}");
    let run = forge.run(&[], "git fetch origin");
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    assert!(forge.got_token());

    // One that was changed afterwards is not the one that was trusted.
    let asked = forge.host.seen().len();
    forge.fixture.git(&["remote", "set-url", "origin", &format!("https://git.test:{port}/team/other.git")]);
    assert_eq!(forge.run(&[], "git fetch origin").outcome(), "failed/agent");
    assert!(forge.host.seen()[asked..].iter().all(|head| !head.headers.contains_key("authorization")));
    let listed = forge.fixture.cofferdam(["trust", "list"]);
    assert!(String::from_utf8_lossy(&listed.stdout).starts_with("changed "));
    assert_eq!(forge.fixture.cofferdam(["trust", "revoke"]).code, Some(0));
}
