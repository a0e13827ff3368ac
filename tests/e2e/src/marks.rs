//! A folder of the host that agents write to, so that a test knows what they did from a second source.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::fixture::Fixture;

/// A folder of the host that agents write to.
pub struct Marks {
    folder: PathBuf,
}

impl Marks {
    /// A new one, beside the state folder.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new(fixture: &Fixture) -> Self {
        let folder = fixture.path("marks");
        fs::create_dir(&folder).expect("a new folder");
        // In a container the agent is a user of its own.
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("our own folder");
        Self { folder: folder.canonicalize().expect("the folder is there") }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &PathBuf {
        &self.folder
    }

    /// The value of `--mount` that lets an agent write here.
    #[must_use]
    pub fn mount(&self) -> String {
        format!("{}:rw", self.folder.display())
    }

    /// A script that marks its start, does something, and marks its end.
    #[must_use]
    pub fn script(&self, body: &str) -> String {
        let mark = self.folder.join("mark");
        let mark = mark.display();
        format!("echo started >> {mark}; {body}; echo ended >> {mark}")
    }

    /// How often an agent has started.
    #[must_use]
    pub fn starts(&self) -> usize {
        self.lines().iter().filter(|line| *line == "started").count()
    }

    /// How often an agent has come to its end.
    #[must_use]
    pub fn ends(&self) -> usize {
        self.lines().iter().filter(|line| *line == "ended").count()
    }

    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("mark")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}
