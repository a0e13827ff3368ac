//! Answers of the last minute. A check costs a model call, and who asks twice in a row wants the same answer.
//!
//! An answer is found by everything that it depends on, of which only a salted hash is kept: no key or token is in the
//! file, and nothing that a key could be guessed from.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use cofferdam_operations::random_bits;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::AuthStatus;
use crate::home::Home;
use crate::node::now_ms;

/// How long an answer is good for.
const KEPT_MS: u64 = 60_000;

/// The answers of one state folder.
#[derive(Debug, Clone)]
pub struct AuthCache {
    path: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    salt: String,
    answers: BTreeMap<String, KeptAnswer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptAnswer {
    at_ms: u64,
    status: AuthStatus,
}

impl AuthCache {
    /// The answers of this state folder.
    #[must_use]
    pub fn of(home: &Home) -> Self {
        Self { path: home.root().join("auth-checks.json") }
    }

    /// The answer of the last minute to a check that depended on the same. A file that cannot be read has none.
    #[must_use]
    pub fn recall(&self, depends_on: &[&[u8]]) -> Option<AuthStatus> {
        let mut kept = self.read();
        let answer = kept.answers.remove(&name_of(&kept.salt, depends_on))?;
        is_good(&answer, now_ms()).then_some(answer.status)
    }

    /// Keeps an answer, if it cost something to get: what is found out without starting the agent is asked anew.
    ///
    /// # Errors
    /// If the file cannot be written; the next check is then made again.
    pub fn keep(&self, depends_on: &[&[u8]], status: &AuthStatus) -> io::Result<()> {
        if !status.available {
            return Ok(());
        }
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(self.scratch("lock"))?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let mut kept = self.read();
        if kept.salt.is_empty() {
            kept = Kept { salt: format!("{:032x}", random_bits()), answers: BTreeMap::new() };
        }
        let now = now_ms();
        kept.answers.retain(|_, answer| is_good(answer, now));
        let name = name_of(&kept.salt, depends_on);
        kept.answers.insert(name, KeptAnswer { at_ms: now, status: status.clone() });
        let new = self.scratch("new");
        let mut file = File::options().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(&kept)?)?;
        fs::rename(new, &self.path)
    }

    fn read(&self) -> Kept {
        let text = fs::read(&self.path).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn scratch(&self, extension: &str) -> PathBuf {
        self.path.with_extension(extension)
    }
}

/// A clock that was set back makes an answer old, and never new.
fn is_good(answer: &KeptAnswer, now: u64) -> bool {
    now.checked_sub(answer.at_ms).is_some_and(|age| age < KEPT_MS)
}

fn name_of(salt: &str, depends_on: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in [salt.as_bytes()].iter().chain(depends_on) {
        // With its length, so that no two lists of parts read the same.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use cofferdam_core::{Environment, Mode};

    use super::*;
    use crate::auth::AuthWord;

    fn status(available: bool) -> AuthStatus {
        AuthStatus {
            agent: "claude_code".to_owned(),
            available,
            authenticated: false,
            checked_at: "2026-11-16T05:14:19.250Z".to_owned(),
            execution_environment: Environment::Sandbox,
            mode: Mode::Native,
            status: AuthWord::AuthRequired,
            message: String::new(),
        }
    }

    #[test]
    fn an_answer_is_for_the_same_question_alone_and_holds_no_secret() {
        let folder = tempfile::tempdir().unwrap();
        let cache = AuthCache::of(&Home::open(folder.path()).unwrap());
        let parts: [&[u8]; 2] = [b"claude_code", b"sk-secret-of-the-caller"];
        assert_eq!(cache.recall(&parts), None);
        cache.keep(&parts, &status(true)).unwrap();
        assert_eq!(cache.recall(&parts), Some(status(true)));
        assert_eq!(cache.recall(&[b"claude_codesk-secret-of-the-caller"]), None);
        assert_eq!(cache.recall(&[b"claude_code", b"another"]), None);
        let text = fs::read_to_string(&cache.path).unwrap();
        assert!(!text.contains("secret"), "{text}");
        let mode = std::os::unix::fs::PermissionsExt::mode(&cache.path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_cost_nothing_is_asked_anew() {
        let folder = tempfile::tempdir().unwrap();
        let cache = AuthCache::of(&Home::open(folder.path()).unwrap());
        cache.keep(&[b"x"], &status(false)).unwrap();
        assert_eq!(cache.recall(&[b"x"]), None);
    }

    #[test]
    fn an_answer_is_good_for_a_minute_and_no_longer() {
        let at = |at_ms| KeptAnswer { at_ms, status: status(true) };
        assert!(is_good(&at(1_000), 1_000));
        assert!(is_good(&at(1_000), 60_999));
        assert!(!is_good(&at(1_000), 61_000));
        assert!(!is_good(&at(1_000), 999), "a clock that was set back");
    }

    #[test]
    fn a_damaged_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let cache = AuthCache::of(&Home::open(folder.path()).unwrap());
        fs::write(&cache.path, "{").unwrap();
        assert_eq!(cache.recall(&[b"x"]), None);
        cache.keep(&[b"x"], &status(true)).unwrap();
        assert_eq!(cache.recall(&[b"x"]), Some(status(true)));
    }
}
