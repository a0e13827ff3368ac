//! What becomes of a run's changes besides the diff: a commit on a branch of the run's own repository.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::run::Source;
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

/// The name of a branch, as git allows it, and nothing that a refspec could be made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BranchName(String);

/// What a commit says.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitMessage(String);

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

    /// The name, without `refs/heads/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The whole name of the reference.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl CommitMessage {
    const LONGEST: usize = 64 << 10;

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for BranchName {
    type Err = ValueError;

    /// The rules of `git check-ref-format --branch`, and a few that are ours: no `+`, which forces, and no `refs/`,
    /// which would name something else than it says.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let bad = text.is_empty()
            || text.len() > Self::LONGEST
            || text.starts_with(['-', '/'])
            || text.ends_with(['/', '.'])
            || text == "@"
            || text == "HEAD"
            || text.starts_with("refs/")
            || text.split('/').any(|part| part.starts_with('.') || part.ends_with(".lock"))
            || ["..", "//", "@{"].iter().any(|part| text.contains(part))
            || text.chars().any(|c| c.is_control() || " ~^:?*[\\+".contains(c));
        match bad {
            true => Err(ValueError::new(
                text,
                "is not the name of a branch",
                "type the name alone, such as `fix-login`",
            )),
            false => Ok(Self(text.to_owned())),
        }
    }
}

impl FromStr for CommitMessage {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let hint = "type what was done in one line, such as `Fix the login`";
        if text.trim().is_empty() {
            return Err(ValueError::new(text, "says nothing", hint));
        }
        if text.len() > Self::LONGEST {
            return Err(ValueError {
                problem: "the text is longer than 64 KiB".to_owned(),
                hint: hint.to_owned(),
            });
        }
        if text.contains('\0') {
            return Err(ValueError {
                problem: "the text holds a NUL character".to_owned(),
                hint: hint.to_owned(),
            });
        }
        Ok(Self(text.to_owned()))
    }
}

macro_rules! written_as_text {
    ($($value:ty),*) => { $(
        impl TryFrom<String> for $value {
            type Error = ValueError;

            fn try_from(text: String) -> Result<Self, ValueError> {
                text.parse()
            }
        }

        impl From<$value> for String {
            fn from(value: $value) -> Self {
                value.0
            }
        }

        impl fmt::Display for $value {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )* };
}
written_as_text!(BranchName, CommitMessage);

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
