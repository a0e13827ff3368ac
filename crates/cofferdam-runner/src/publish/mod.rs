//! Commits an attempt's changes and pushes them to the branch that the run asked for.
//!
//! The agent is gone by then, and cannot have pushed with this: what the step is granted is opened on a socket that no
//! agent sees, and only now. [`publisher_main`] does the work in a sealed sandbox whose one way out is that socket; the
//! credential stays with the broker, which lets one branch through.

mod job;
mod publisher;

use std::io;
use std::time::Duration;

use cofferdam_core::{EventType, FailureClass, NewEvent, Outcome, Publish, RepoUrl, Source, with_causes};
use cofferdam_sandbox::{CreateError, Sandbox, Tool, ToolAccess, ToolOutput, ToolSystem};
use cofferdam_store::{Claimed, Left, failpoint};
use serde_json::{Value, json};

use crate::artifacts::{KeptDiff, Shown, make_durable, make_scratch, read_answer};
use crate::egress::{Publishing, publishing};
use crate::node::{Node, now_ms};
use crate::programs::Git;
use crate::workspace::{CheckedOut, Handover};
pub use job::{PublishAnswer, PublishJob};
pub use publisher::publisher_main;

/// The name of what was published among a run's artifacts.
pub const PUBLISHED: &str = "publish";

/// How long one try has.
const DEADLINE: Duration = Duration::from_secs(300);
/// Memory that git may use for the pack, however little the agent had.
const MEMORY: u64 = 1 << 30;
/// How often a push is tried that did not reach its repository, and the pauses in between.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// An attempt that succeeded, and whose changes are to be published.
pub(crate) struct Published<'a> {
    pub(crate) node: &'a Node,
    pub(crate) claimed: &'a Claimed,
    pub(crate) sandbox: &'a dyn Sandbox,
    pub(crate) handover: &'a Handover,
}

/// What is published where, and by which way.
#[derive(Clone, Copy)]
struct Step<'a> {
    publish: &'a Publish,
    url: &'a RepoUrl,
    base: &'a CheckedOut,
    diff: &'a KeptDiff,
    way_out: &'a Publishing,
}

/// Why the changes are not on their branch.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("secrets were taken out of the diff, so it is not what the agent did, and is not pushed")]
    Redacted,
    #[error("the workspace was not made from a commit of the repository")]
    NoBase,
    #[error("the way to the broker could not be opened: {0}")]
    WayOut(String),
    #[error("the publisher could not be started")]
    Start(#[from] CreateError),
    #[error("{0}")]
    Rejected(String),
    #[error("{0}")]
    Publisher(String),
    #[error("what was published could not be kept")]
    Io(#[from] io::Error),
}

impl Fault {
    fn hint(&self) -> &'static str {
        match self {
            Self::Redacted => "keep the diff, and find out how the agent came to write a secret",
            Self::Rejected(_) => "the diff is kept; run it again, and it begins with the branch as it is now",
            Self::NoBase | Self::WayOut(_) | Self::Start(_) | Self::Publisher(_) | Self::Io(_) => {
                "the diff is kept: `cofferdam runs diff RUN`"
            }
        }
    }
}

impl Published<'_> {
    /// Publishes the diff, records it, and says how the attempt ended with that. Doing it again, after a crash, makes
    /// the same commit, which is then on its branch already.
    pub(crate) async fn publish(self, publish: &Publish, diff: &KeptDiff, left: &mut Left) -> Outcome {
        if diff.changed_count == 0 {
            let data = json!({ "branch": publish.branch, "reason": "nothing was changed" });
            left.events.push(NewEvent::new(now_ms(), EventType::PublishSkipped, data));
            return Outcome::Succeeded;
        }
        let mut committed = None;
        let pushed = self.try_publish(publish, diff, &mut committed).await;
        failpoint("runner.pushed");
        let record = self.record(publish, committed.as_ref(), pushed.is_ok());
        if committed.is_some() {
            left.events.push(NewEvent::new(now_ms(), EventType::PublishCommitted, record.clone()));
        }
        let kept = match pushed {
            Ok(()) => {
                left.events.push(NewEvent::new(now_ms(), EventType::PublishPushed, record.clone()));
                keep(diff, &record, left).await.map_err(Fault::Io)
            }
            Err(fault) => {
                // The fault is what to tell, also if the disk is full by now.
                let _ = keep(diff, &record, left).await;
                Err(fault)
            }
        };
        match kept {
            Ok(()) => Outcome::Succeeded,
            Err(fault) => {
                let branch = &publish.branch;
                let message = format!("the changes are not on `{branch}`: {}", with_causes(&fault));
                let data = json!({ "branch": branch, "message": message });
                left.events.push(NewEvent::new(now_ms(), EventType::PublishFailed, data));
                Outcome::failed_with_hint(FailureClass::Publish, message, fault.hint())
            }
        }
    }

    async fn try_publish(
        &self,
        publish: &Publish,
        diff: &KeptDiff,
        committed: &mut Option<PublishAnswer>,
    ) -> Result<(), Fault> {
        if diff.has_redacted {
            return Err(Fault::Redacted);
        }
        let Claimed { attempt, request, .. } = self.claimed;
        let base = self.handover.checked_out.as_ref().ok_or(Fault::NoBase)?;
        let Source::Git { url, .. } = &request.source else { return Err(Fault::NoBase) };
        let way_out = publishing(&self.node.home, attempt, request).ok_or(Fault::NoBase)?;
        way_out.announce()?;
        let opened = self.node.broker.open_publishing(&self.node.store, &way_out).await;
        let done = match opened {
            Ok(()) => self.push(&Step { publish, url, base, diff, way_out: &way_out }, committed).await,
            Err(error) => Err(Fault::WayOut(with_causes(&error))),
        };
        self.node.broker.close(&self.node.store, attempt).await;
        done
    }

    async fn push(&self, step: &Step<'_>, committed: &mut Option<PublishAnswer>) -> Result<(), Fault> {
        let mut pauses = PAUSES.iter();
        loop {
            let (output, answer) = self.run_publisher(step).await?;
            *committed = answer;
            let is_pushed = committed.as_ref().is_some_and(|answer| answer.is_pushed);
            let fault = match output.code {
                Some(0) if is_pushed => return Ok(()),
                Some(code) if code == i32::from(PublishJob::REJECTED) => {
                    return Err(Fault::Rejected(output.message));
                }
                _ => Fault::Publisher(output.message),
            };
            // Without a commit, no other try would make one.
            match (committed.is_some(), pauses.next()) {
                (true, Some(pause)) => tokio::time::sleep(*pause).await,
                (true, None) | (false, _) => return Err(fault),
            }
        }
    }

    async fn run_publisher(&self, step: &Step<'_>) -> Result<(ToolOutput, Option<PublishAnswer>), Fault> {
        let Step { publish, url, base, diff, way_out } = *step;
        let Claimed { attempt, request, .. } = self.claimed;
        let own = self.node.home.workspaces().join(self.sandbox.id().to_string());
        let scratch = make_scratch(&own.join("publish-scratch"))?;
        let git = Git::for_tools(&self.node.caller.search(&request.source));
        let mut shown = Shown { exchange: self.sandbox.exchange(), folders: Vec::new() };
        let job = PublishJob {
            git: git.as_path().into(),
            base: base.commit.clone(),
            objects: shown.show("objects", &base.objects, ToolAccess::ReadCaller),
            patch: shown.show("patch", &diff.patch().as_path().into(), ToolAccess::ReadCaller),
            message: message(publish, self.claimed),
            at_secs: attempt.run.made_at_ms() / 1000,
            sockets: shown.show("sockets", &way_out.grant.folder.as_path().into(), ToolAccess::Connect),
            repository: below_https(url),
            reference: publish.branch.reference(),
            scratch: shown.show("scratch", &scratch.as_path().into(), ToolAccess::Write),
        };
        let job = serde_json::to_string(&job).map_err(io::Error::from)?;
        let mut policy = request.policy.clone();
        policy.limits.memory_bytes = policy.limits.memory_bytes.max(MEMORY);
        let arguments = vec!["publish".to_owned(), job];
        let tool = Tool {
            arguments,
            input: Vec::new(),
            folders: shown.folders,
            system: ToolSystem::Programs,
            policy,
            deadline: DEADLINE,
        };
        let output = self.sandbox.exchange().run_tool(&tool).await?;
        let answer = read_answer(&scratch, PublishJob::ANSWER)
            .ok()
            .and_then(|content| serde_json::from_slice(&content).ok())
            .filter(|answer: &PublishAnswer| is_commit(&answer.commit));
        Ok((output, answer))
    }

    fn record(&self, publish: &Publish, committed: Option<&PublishAnswer>, is_pushed: bool) -> Value {
        let base = self.handover.checked_out.as_ref().map(|base| base.commit.as_str());
        let commit = committed.map(|answer| answer.commit.as_str());
        let mut record = json!({
            "branch": publish.branch, "commit_sha": commit, "base_sha": base, "pushed": is_pushed,
        });
        if let (Source::Git { url, .. }, Some(base), Some(commit)) =
            (&self.claimed.request.source, base, commit)
            && let Some(address) = compare_url(url, base, commit)
        {
            record["compare_url"] = json!(address);
        }
        record
    }
}

/// Puts what was published among the run's artifacts.
async fn keep(diff: &KeptDiff, record: &Value, left: &mut Left) -> io::Result<()> {
    let path = diff.folder.join("publish.json");
    std::fs::write(&path, record.to_string())?;
    left.artifacts.extend(make_durable(diff.folder.clone(), vec![(PUBLISHED.to_owned(), path)]).await?);
    Ok(())
}

fn message(publish: &Publish, claimed: &Claimed) -> String {
    match &publish.commit_message {
        Some(message) => message.as_str().to_owned(),
        None => format!(
            "Changes by {}\n\nCofferdam-Run: {}",
            claimed.request.work.provider(),
            claimed.attempt.run
        ),
    }
}

fn below_https(url: &RepoUrl) -> String {
    let text = url.as_str();
    text.split_once("://").map_or(text, |(_, rest)| rest).trim_end_matches('/').to_owned()
}

/// Where people look at the commit, on hosts whose pages are known.
fn compare_url(url: &RepoUrl, base: &str, commit: &str) -> Option<String> {
    let address = below_https(url);
    let address = address.strip_suffix(".git").unwrap_or(&address);
    let between = match address.split('/').next()? {
        "github.com" => "compare",
        "gitlab.com" => "-/compare",
        _ => return None,
    };
    Some(format!("https://{address}/{between}/{base}...{commit}"))
}

/// The publisher read hostile files; what it says is not trusted to be a commit's name.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use cofferdam_core::LocalUrls;

    use super::*;

    #[test]
    fn a_commit_has_a_page_where_hosts_have_one() {
        let page = |url: &str| compare_url(&RepoUrl::parse(url, LocalUrls::Refuse).unwrap(), "a", "b");
        assert_eq!(
            page("https://github.com/o/r.git"),
            Some("https://github.com/o/r/compare/a...b".to_owned())
        );
        assert_eq!(
            page("https://gitlab.com/o/r/"),
            Some("https://gitlab.com/o/r/-/compare/a...b".to_owned())
        );
        assert_eq!(page("https://git.example/o/r"), None);
    }
}
