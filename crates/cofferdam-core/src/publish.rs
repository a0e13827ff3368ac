//! What becomes of a run's changes besides the diff: a commit on a branch of the run's own repository.

use serde::{Deserialize, Serialize};

use crate::run::Source;
use crate::text::checked_text;
use crate::value::ValueError;

/// A commit of the changes, pushed to a branch once the agent has ended well. The agent itself cannot push with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// Where it is pushed to. The branch grows by one commit, or is made; it is never forced.
    pub branch: BranchName,
    /// What the commit says; a sentence of ours without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_message: Option<CommitMessage>,
}

checked_text! {
    /// The name of a branch, as git allows it, without `refs/heads/`, and nothing that a refspec could be made of.
    BranchName: branch_name => ValueError;
    /// What a commit says.
    CommitMessage: commit_message => ValueError;
}

impl Publish {
    /// Why the changes to a workspace from this source cannot be pushed, with what to do; `None` if they can.
    #[must_use]
    pub fn refused_for(&self, source: &Source) -> Option<ValueError> {
        let problem = match source {
            Source::Git { url, .. } if url.https_host().is_some() => return None,
            Source::Git { url, .. } => {
                format!("a branch can be pushed to an https address alone, and `{url}` is none")
            }
            Source::Local { .. } => {
                "a branch is pushed to a repository's address, and this is a folder".to_owned()
            }
            Source::Empty => {
                "a branch is pushed to a repository's address, and there is no repository".to_owned()
            }
        };
        let hint = "name the repository by its https address, such as `https://github.com/owner/name`";
        Some(ValueError { problem, hint: hint.to_owned() })
    }
}

impl BranchName {
    /// What a file system takes for a name.
    const LONGEST: usize = 200;

    /// The whole name of the reference.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl CommitMessage {
    const LONGEST: usize = 64 << 10;
}

/// The rules of `git check-ref-format --branch`, and a few that are ours: no `+`, which forces, and no `refs/`, which
/// would name something else than it says.
fn branch_name(text: &str) -> Result<String, ValueError> {
    let bad = text.is_empty()
        || text.len() > BranchName::LONGEST
        || text.starts_with(['-', '/'])
        || text.ends_with(['/', '.'])
        || text == "@"
        || text == "HEAD"
        || text.starts_with("refs/")
        || text.split('/').any(|part| part.starts_with('.') || part.ends_with(".lock"))
        || ["..", "//", "@{"].iter().any(|part| text.contains(part))
        || text.chars().any(|c| c.is_control() || " ~^:?*[\\+".contains(c));
    let hint = "type the name alone, such as `fix-login`";
    ValueError::unless(!bad, text, "is not the name of a branch", hint)
}

fn commit_message(text: &str) -> Result<String, ValueError> {
    let hint = "type what was done in one line, such as `Fix the login`";
    let refuse = |problem: &str| Err(ValueError { problem: problem.to_owned(), hint: hint.to_owned() });
    if text.trim().is_empty() {
        return Err(ValueError::new(text, "must not be empty", hint));
    }
    if text.len() > CommitMessage::LONGEST {
        return refuse("the text is longer than 64 KiB");
    }
    if text.contains('\0') {
        return refuse("the text holds a NUL character");
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo_url::{LocalUrls, RepoUrl};

    #[test]
    fn a_branch_has_a_name_that_git_takes_and_that_means_itself_alone() {
        for name in ["main", "fix-login", "feature/a.b", "a@b", "Ümlaut"] {
            let branch: BranchName = name.parse().unwrap();
            assert_eq!(branch.reference(), format!("refs/heads/{name}"));
        }
        let bad = [
            "",
            "-f",
            "/a",
            "a/",
            "a.",
            ".a",
            "a/.b",
            "a..b",
            "a//b",
            "a.lock",
            "a.lock/b",
            "@",
            "HEAD",
            "a@{1}",
            "refs/heads/a",
            "+a",
            "a:b",
            "a b",
            "a~1",
            "a^",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "a\nb",
            "a\0",
        ];
        for name in bad {
            assert!(name.parse::<BranchName>().is_err(), "{name:?}");
        }
        assert!("x".repeat(201).parse::<BranchName>().is_err());
    }

    #[test]
    fn a_message_says_something_and_is_of_a_size_that_people_read() {
        assert_eq!("Fix it\n\nBecause.".parse::<CommitMessage>().unwrap().as_str(), "Fix it\n\nBecause.");
        for text in ["", " \n", "a\0b", &"x".repeat((64 << 10) + 1)] {
            assert!(text.parse::<CommitMessage>().is_err());
        }
    }

    #[test]
    fn only_an_https_address_can_be_pushed_to() {
        let publish = Publish { branch: "work".parse().unwrap(), commit_message: None };
        let of =
            |url: &str| Source::Git { url: RepoUrl::parse(url, LocalUrls::Allow).unwrap(), reference: None };
        assert_eq!(publish.refused_for(&of("https://host.example/a/b")), None);
        let others = [
            of("ssh://git@host.example/a"),
            of("file:///srv/a.git"),
            Source::Empty,
            Source::Local { path: "/a".into() },
        ];
        for source in others {
            let refused = publish.refused_for(&source).unwrap().to_string();
            assert!(refused.contains("https address"), "{refused}");
        }
    }

    #[test]
    fn what_is_stored_reads_back_checked() {
        let publish: Publish = serde_json::from_str(r#"{"branch": "work"}"#).unwrap();
        assert_eq!(publish.commit_message, None);
        assert_eq!(serde_json::to_string(&publish).unwrap(), r#"{"branch":"work"}"#);
        assert!(serde_json::from_str::<Publish>(r#"{"branch": "-d"}"#).is_err());
    }
}
