//! A run's changes become a commit on a branch of its own repository, pushed by the broker once the agent is gone.

use std::process::Command;
use std::time::Duration;

use cofferdam_core::{LocalUrls, Network, Publish, RepoUrl, RunState, Source};
use cofferdam_e2e::processes::wait_until;
use cofferdam_e2e::{DetachedNode, Finished, Marks, Queue, Record, node_id};
use cofferdam_test_marks::once;
use serde_json::Value;

use crate::through_broker::git::Forge;

/// Writes files of every kind that a commit could go wrong with.
const CHANGES: &str = "mkdir -p made && printf 'one\\r\\ntwo' > made/new.txt && chmod +x made/new.txt && \
    ln -s ../README.md made/link && printf '\\000\\001' > made/bytes && git mv README.md renamed.md && echo more >> renamed.md";

impl Forge {
    fn address(&self) -> String {
        format!("https://{}/team/app.git", self.host.address())
    }

    fn publishing(&self, flags: &[&str], script: &str) -> Finished {
        Finished::of(self.publishing_command(flags, script))
    }

    fn publishing_command(&self, flags: &[&str], script: &str) -> Command {
        let allow = self.host.address().to_string();
        let mut command = self.fixture.command();
        command.args(["run", "--json", "--allow", &allow, "--repo", &self.address()]);
        command.args(flags).args(["--", "sh", "-c", script]);
        command
    }

    /// What git says of the repository at the host.
    fn at_host(&self, args: &[&str]) -> String {
        let output = self.fixture.git_command(&self.bare()).args(args).output().expect("git is installed");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("git's words are text").trim().to_owned()
    }

    fn record(&self, run: &Finished) -> Record {
        Record::of(&self.fixture, &run.run_id())
    }
}

fn assert_failed_to_publish(forge: &Forge, run: &Finished, words: &str) {
    assert_eq!(run.outcome(), "failed/publish", "{}", run.stderr);
    let message = run.json()["outcome"]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains(words), "`{words}` in {message}");
    assert!(!run.diff().is_empty(), "the diff is kept");
    let record = forge.record(run);
    assert_eq!(record.data_of("publish.failed").len(), 1);
    assert_eq!(record.data_of("publish.pushed"), Vec::<&Value>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_changes_arrive_as_one_commit_of_ours_on_the_commit_that_the_run_began_with() {
    let forge = Forge::open().await;
    let main = forge.at_host(&["rev-parse", "main"]);
    let flags = ["--commit-branch", "work/one", "--commit-message", "Make things\n\nBecause."];
    let run = forge.publishing(&flags, CHANGES);
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);

    let branch = "refs/heads/work/one";
    assert_eq!(forge.at_host(&["rev-parse", &format!("{branch}^")]), main);
    let said = forge.at_host(&["log", "-1", "--format=%an <%ae>|%cn <%ce>|%B", branch]);
    let who = "Cofferdam <cofferdam@localhost>";
    assert_eq!(said, format!("{who}|{who}|Make things\n\nBecause."));
    let tree = forge.at_host(&["ls-tree", "-r", "--format=%(objectmode) %(path)", branch]);
    assert_eq!(
        tree,
        "100644 made/bytes\n120000 made/link\n100755 made/new.txt\n100644 renamed.md\n100644 src/main.txt"
    );
    assert_eq!(forge.at_host(&["show", &format!("{branch}:renamed.md")]), "hello\nmore");
    assert_eq!(forge.at_host(&["cat-file", "-s", &format!("{branch}:made/new.txt")]), "8");
    assert_eq!(forge.at_host(&["rev-parse", "main"]), main, "nothing else moved");

    let record = forge.record(&run);
    let pushed = record.data_of("publish.pushed");
    assert_eq!(pushed.len(), 1);
    assert_eq!(pushed[0]["commit_sha"], forge.at_host(&["rev-parse", branch]));
    assert_eq!((&pushed[0]["base_sha"], &pushed[0]["branch"]), (&main.into(), &"work/one".into()));
    assert_eq!(record.data_of("publish.committed").len(), 1);
    let kept = forge.fixture.state().join("runs").join(run.run_id()).join("1/publish.json");
    let kept: Value = serde_json::from_slice(&std::fs::read(kept).expect("an artifact")).expect("JSON");
    assert_eq!(kept["pushed"], true);
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_that_is_there_is_what_the_run_begins_with() {
    let forge = Forge::open().await;
    let first = forge.publishing(&["--commit-branch", "work"], "echo 1 > one.txt");
    assert_eq!(first.outcome(), "succeeded", "{}", first.stderr);
    let second = forge.publishing(&["--commit-branch", "work"], "test -f one.txt && echo 2 > two.txt");
    assert_eq!(second.outcome(), "succeeded", "{}", second.stderr);
    assert_eq!(forge.at_host(&["rev-list", "--count", "main..work"]), "2");
    let said = forge.at_host(&["log", "-1", "--format=%B", "work"]);
    assert!(said.contains(&format!("Cofferdam-Run: {}", second.run_id())), "{said}");
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_that_went_on_is_not_forced() {
    let forge = Forge::open().await;
    let first = forge.publishing(&["--commit-branch", "work"], "echo 1 > one.txt");
    assert_eq!(first.outcome(), "succeeded", "{}", first.stderr);
    let work = forge.at_host(&["rev-parse", "work"]);
    let second = forge.publishing(&["--commit-branch", "work", "--ref", "main"], "echo 2 > two.txt");
    assert_failed_to_publish(&forge, &second, "the repository did not take refs/heads/work");
    assert_eq!(forge.at_host(&["rev-parse", "work"]), work);
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_cannot_push_because_its_changes_will_be() {
    let forge = Forge::open().await;
    let before = forge.branches();
    let script = "git config user.name a && git config user.email a@localhost && echo x > x.txt && git add x.txt && \
        git commit --quiet --message=x && git push origin HEAD:work; git push origin HEAD:elsewhere; \
        ls -d /workspace/../publish /tool 2>/dev/null; exit 9";
    let run = forge.publishing(&["--commit-branch", "work"], script);
    assert_eq!(run.outcome(), "failed/agent", "{}", run.stderr);
    assert!(forge.said(&run).contains("this run may not push"), "{}", forge.said(&run));
    assert_eq!(forge.branches(), before, "and of a run that failed nothing is pushed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_agent_left_for_git_to_run_is_not_run() {
    let forge = Forge::open().await;
    // Whatever runs on the host or in the publisher would say so at the host of the repository, or change the commit.
    let script = "cat > /tmp/evil <<'END'\n#!/bin/sh\necho evil >> /workspace/evil.txt; echo evil\nEND\n\
        chmod +x /tmp/evil; cp /tmp/evil evil.sh; \
        for hook in pre-commit pre-push post-commit prepare-commit-msg reference-transaction; do \
        cp /tmp/evil .git/hooks/$hook 2>/dev/null || { mkdir -p .git/hooks; cp /tmp/evil .git/hooks/$hook; }; done; \
        git config filter.evil.clean ./evil.sh; git config filter.evil.smudge ./evil.sh; \
        git config core.fsmonitor ./evil.sh; git config core.sshCommand ./evil.sh; \
        git config credential.helper '!./evil.sh'; git config commit.gpgSign true; git config gpg.program ./evil.sh; \
        git config url.https://127.0.0.1:1/.insteadOf https://; git config user.name Mallory; \
        echo '* filter=evil' > .gitattributes; echo plain > plain.txt";
    let run = forge.publishing(&["--commit-branch", "work"], script);
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    assert_eq!(forge.at_host(&["show", "work:plain.txt"]), "plain");
    assert_eq!(forge.at_host(&["log", "-1", "--format=%an", "work"]), "Cofferdam");
    let names = forge.at_host(&["diff", "--name-only", "main", "work"]);
    assert_eq!(names, ".gitattributes\nevil.sh\nplain.txt");
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_pushed_where_nothing_was_changed_or_a_secret_was_written() {
    let mut forge = Forge::open().await;
    let before = forge.branches();
    let run = forge.publishing(&["--commit-branch", "work"], "true");
    assert_eq!(run.outcome(), "succeeded", "{}", run.stderr);
    assert_eq!(forge.record(&run).data_of("publish.skipped").len(), 1);

    forge.fixture.set_env("DEPLOY_TOKEN", "a-very-secret-value-0001");
    let run =
        forge.publishing(&["--commit-branch", "work", "--env", "DEPLOY_TOKEN"], "echo $DEPLOY_TOKEN > a.txt");
    assert_failed_to_publish(&forge, &run, "secrets were taken out of the diff");
    assert_eq!(forge.branches(), before);
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repository_at_a_private_address_that_is_not_listed_is_not_pushed_to() {
    let forge = Forge::open().await;
    let mut command = forge.fixture.command();
    command.args(["run", "--json", "--repo", &forge.address(), "--commit-branch", "work"]);
    command.args(["--", "sh", "-c", "echo x > x.txt"]);
    let run = Finished::of(command);
    assert_failed_to_publish(&forge, &run, "not a public address");
}

#[once]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_after_the_push_the_next_start_finds_the_same_commit_there() {
    let forge = Forge::open().await;
    let mut command = forge.publishing_command(&["--commit-branch", "work"], "echo x > x.txt");
    command.env("COFFERDAM_FAILPOINT", "runner.pushed");
    let finished = Finished::of(command);
    assert_eq!(finished.code, None, "it was not killed: {}", finished.stderr);
    let pushed = forge.at_host(&["rev-parse", "work"]);

    let record = Record::of_the_only_run(&forge.fixture);
    record.assert_ended_once();
    assert_eq!(record.outcome(), "succeeded", "{:?}", record.data_of("publish.failed"));
    let data = record.data_of("publish.pushed");
    assert_eq!(data.len(), 1);
    assert_eq!(data[0]["commit_sha"], pushed);
    assert_eq!(forge.at_host(&["rev-list", "--count", "main..work"]), "1");
}

/// A node with a broker of its own, which learns from the state folder when the agent is gone.
#[test]
fn a_detached_run_is_published_by_the_broker_beside_its_node_also_after_a_crash() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let forge = runtime.block_on(Forge::open());
    let (queue, marks) = (Queue::open(&forge.fixture), Marks::new(&forge.fixture));
    let enqueue = |branch: &str, script: &str| {
        queue.enqueue(&forge.fixture, &marks, script, |request| {
            let url = RepoUrl::parse(&forge.address(), LocalUrls::Refuse).expect("an address");
            request.source = Source::Git { url, reference: None };
            request.policy.network = Network::Sealed;
            let allow = forge.host.address().to_string();
            request.policy.egress.allow = vec![allow.parse().expect("a rule")];
            let branch = branch.parse().expect("a branch");
            request.publish = Some(Publish { branch, commit_message: None });
        })
    };
    let mut node = DetachedNode::start(&forge.fixture, &node_id(1), Some("runner.pushed"));
    let run = enqueue("first", "echo x > x.txt; git push origin HEAD:first && exit 7; true");
    assert!(node.is_killed_within(Duration::from_secs(60)), "it pushes");
    let pushed = forge.at_host(&["rev-parse", "first"]);
    let node = DetachedNode::start(&forge.fixture, &node_id(1), None);
    assert_eq!(queue.wait_for_end(&run), RunState::Succeeded);
    assert_eq!(forge.at_host(&["rev-parse", "first"]), pushed);
    let record = Record::of(&forge.fixture, run.as_str());
    assert_eq!(record.data_of("publish.pushed").len(), 1);
    assert_eq!(record.data_of("publish.pushed")[0]["commit_sha"], pushed);

    let second = enqueue("second", "echo y > y.txt");
    assert_eq!(queue.wait_for_end(&second), RunState::Succeeded);
    assert_eq!(forge.at_host(&["show", "second:y.txt"]), "y");
    let workspaces = forge.fixture.state().join("workspaces");
    let is_empty = || std::fs::read_dir(&workspaces).is_ok_and(|mut entries| entries.next().is_none());
    wait_until(Duration::from_secs(20), "the workspaces are removed", is_empty);
    node.stop();
}

#[once]
#[test]
fn a_branch_needs_an_address_and_a_name() {
    let fixture = cofferdam_e2e::Fixture::new();
    for (flags, words) in [
        (["--commit-branch", "work"], "this is a folder"),
        (["--commit-branch", "-f"], "is not the name of a branch"),
        (["--commit-branch", "refs/heads/x"], "is not the name of a branch"),
    ] {
        let run = fixture.cofferdam([&["run"][..], &flags, &["--", "true"]].concat());
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains(words), "`{words}` in {}", run.stderr);
    }
}
