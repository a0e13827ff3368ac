//! What an agent keeps of its conversation, from run to run: a folder in the state folder, which is the only thing of a
//! sandbox that the next one sees.
//!
//! Whatever is in it was written by an agent, and is never read here: neither opened nor followed, only measured and
//! removed. Which session it is, the worker has reported; the record of that is beside the folder.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};

use cofferdam_core::{AgentName, Conversation, KeptSession, SessionStart, inside};
use cofferdam_sandbox::{Kept, holds_at_most, remove_tree};
use serde::{Deserialize, Serialize};

use crate::home::Home;

/// How much an agent may keep. One that has more starts anew: it would never have less again.
const MOST_BYTES: u64 = 1 << 30;
/// No CLI has longer names for its sessions.
const LONGEST_ID: usize = 128;

/// What an agent keeps, ready for the next sandbox.
#[derive(Debug)]
pub(crate) struct Memory {
    folder: PathBuf,
    provider: &'static str,
    /// The session that goes on.
    resume: Option<String>,
    /// Why it begins anew, if that was not asked for.
    pub(crate) note: Option<&'static str>,
}

/// Which session is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    provider: String,
    session_id: String,
}

impl Memory {
    /// What an agent keeps, as it is: a sandbox works with it already.
    pub(crate) fn of(home: &Home, agent: &AgentName, provider: &'static str) -> Self {
        Self { folder: home.agents().join(agent.as_str()), provider, resume: None, note: None }
    }

    /// Opens what an agent keeps. `workspace` is its folder, whose owner it is.
    pub(crate) fn open(
        home: &Home,
        conversation: &Conversation,
        provider: &'static str,
        workspace: &Path,
    ) -> io::Result<Self> {
        let mut memory = Self::of(home, &conversation.agent, provider);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&memory.folder)?;
        let owner = workspace.metadata()?;
        let record = memory.read_record();
        let kept = memory.session_folder().symlink_metadata().ok();
        let is_root = rustix::process::geteuid().is_root();
        memory.note = match (&record, &kept) {
            _ if conversation.session == SessionStart::New => None,
            (Some(record), _) if record.provider != provider => Some("the agent had another provider"),
            (_, Some(kept)) if is_root && kept.uid() != owner.uid() => Some("its folder had another owner"),
            (_, Some(_)) if !holds_at_most(&memory.session_folder(), MOST_BYTES) => {
                Some("it had kept more than 1 GiB")
            }
            (record, Some(_)) => {
                memory.resume = record.as_ref().map(|record| record.session_id.clone());
                return Ok(memory);
            }
            (_, None) => None,
        };
        memory.forget()?;
        let session = memory.session_folder();
        fs::DirBuilder::new().mode(0o700).create(&session)?;
        if is_root {
            chown(&session, Some(owner.uid()), Some(owner.gid()))?;
        }
        Ok(memory)
    }

    /// The folder, as the sandbox is to show it.
    pub(crate) fn kept(&self) -> Kept {
        Kept { source: self.session_folder(), target: inside::SESSION.into() }
    }

    /// What the worker is told of it. `shown` is where it sees the folder.
    pub(crate) fn session(&self, shown: &Path) -> KeptSession {
        KeptSession { folder: shown.display().to_string(), resume: self.resume.clone() }
    }

    /// Records which session the next message goes on with. The name comes from the agent.
    pub(crate) fn remember(&self, session_id: &str) -> io::Result<()> {
        if !is_id(session_id) {
            return Ok(());
        }
        let record = Record { provider: self.provider.to_owned(), session_id: session_id.to_owned() };
        let (path, new) = (self.record(), self.folder.join("session.json.new"));
        fs::write(&new, serde_json::to_vec(&record)?)?;
        fs::rename(new, path)
    }

    fn forget(&self) -> io::Result<()> {
        match fs::remove_file(self.record()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        remove_tree(&self.session_folder())
    }

    fn read_record(&self) -> Option<Record> {
        let record: Record = serde_json::from_slice(&fs::read(self.record()).ok()?).ok()?;
        is_id(&record.session_id).then_some(record)
    }

    fn record(&self) -> PathBuf {
        self.folder.join("session.json")
    }

    fn session_folder(&self) -> PathBuf {
        self.folder.join("session")
    }
}

/// It becomes an argument of a command line and a part of paths inside.
fn is_id(text: &str) -> bool {
    (1..=LONGEST_ID).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        folder: tempfile::TempDir,
        home: Home,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("work")).unwrap();
            let home = Home::open(&folder.path().join("state")).unwrap();
            Self { folder, home }
        }

        fn open(&self, provider: &'static str, session: SessionStart) -> Memory {
            let conversation = Conversation { agent: "coder".parse().unwrap(), session };
            Memory::open(&self.home, &conversation, provider, &self.folder.path().join("work")).unwrap()
        }
    }

    #[test]
    fn a_session_goes_on_until_a_new_one_is_asked_for() {
        let place = Place::new();
        let first = place.open("codex", SessionStart::Continue);
        assert_eq!((first.resume.as_deref(), first.note), (None, None));
        fs::write(first.kept().source.join("x"), "kept").unwrap();
        first.remember("the-session").unwrap();
        let second = place.open("codex", SessionStart::Continue);
        assert_eq!((second.resume.as_deref(), second.note), (Some("the-session"), None));
        assert!(second.kept().source.join("x").is_file());
        let third = place.open("codex", SessionStart::New);
        assert_eq!((third.resume.as_deref(), third.note), (None, None));
        assert!(!third.kept().source.join("x").exists());
        assert_eq!(place.open("codex", SessionStart::Continue).resume, None);
    }

    #[test]
    fn another_cli_cannot_go_on_with_it() {
        let place = Place::new();
        place.open("codex", SessionStart::Continue).remember("the-session").unwrap();
        let other = place.open("claude_code", SessionStart::Continue);
        assert_eq!((other.resume.as_deref(), other.note), (None, Some("the agent had another provider")));
    }

    #[test]
    fn a_name_that_is_no_session_is_not_remembered() {
        let place = Place::new();
        let memory = place.open("codex", SessionStart::Continue);
        for name in ["", "../x", "-x", "a b", "a\nb", "a/b", &"a".repeat(129)] {
            memory.remember(name).unwrap();
            assert_eq!(place.open("codex", SessionStart::Continue).resume, None, "{name}");
        }
    }

    #[test]
    fn a_link_that_an_agent_left_in_place_of_its_folder_is_removed_and_not_followed() {
        let place = Place::new();
        let memory = place.open("codex", SessionStart::Continue);
        let precious = place.folder.path().join("precious");
        fs::create_dir(&precious).unwrap();
        fs::write(precious.join("file"), "x").unwrap();
        std::os::unix::fs::symlink(&precious, memory.kept().source.join("link")).unwrap();
        place.open("codex", SessionStart::New);
        assert!(precious.join("file").is_file());
    }
}
