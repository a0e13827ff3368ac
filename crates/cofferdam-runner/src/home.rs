//! The state folder: where everything is that must outlive a process.

use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use cofferdam_core::PlaceId;

/// The state folder (`~/.cofferdam`, or `COFFERDAM_HOME`), closed to everybody else.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// Opens the state folder, making it if it is not there.
    ///
    /// # Errors
    /// If it cannot be made or closed to others.
    pub fn open(root: &Path) -> io::Result<Self> {
        let make = |path: &Path| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        make(root)?;
        let root = root.canonicalize()?;
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o700))?;
        let home = Self { root };
        let folders = [
            home.sandboxes(),
            home.workspaces(),
            home.runs(),
            home.mirrors(),
            home.checkouts(),
            home.nodes(),
            home.brokers(),
            home.dead_letters(),
            home.agents(),
        ];
        for folder in folders {
            make(&folder)?;
        }
        Ok(home)
    }

    /// The folder itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder's own name, made when it is first asked for. Whoever knows a process of another folder cannot tell from
    /// here whether it lives.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn place(&self, now_ms: u64) -> io::Result<PlaceId> {
        let path = self.root.join("place");
        for _ in 0..2 {
            match std::fs::read_to_string(&path) {
                Ok(text) => return text.trim().parse().map_err(io::Error::other),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            let mut random = [0; 16];
            rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
            let place = PlaceId::new(now_ms, u128::from_le_bytes(random));
            // Of several that do this at once the first one counts, and nobody sees half a name.
            let unnamed = self.root.join(format!("{place}.making"));
            std::fs::write(&unnamed, place.as_str())?;
            let linked = std::fs::hard_link(&unnamed, &path);
            std::fs::remove_file(&unnamed)?;
            match linked {
                Ok(()) => return Ok(place),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("the name of the state folder comes and goes"))
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.root.join("cofferdam.db")
    }

    /// A folder per sandbox that has not been destroyed.
    #[must_use]
    pub fn sandboxes(&self) -> PathBuf {
        self.root.join("sandboxes")
    }

    /// A folder per prepared workspace: what hides files of the original, or the copy, and the diff's base.
    #[must_use]
    pub fn workspaces(&self) -> PathBuf {
        self.root.join("workspaces")
    }

    /// A folder per run with its artifacts.
    #[must_use]
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// A bare mirror per address.
    #[must_use]
    pub fn mirrors(&self) -> PathBuf {
        self.root.join("mirrors")
    }

    /// A pristine checkout per address and commit.
    #[must_use]
    pub fn checkouts(&self) -> PathBuf {
        self.root.join("checkouts")
    }

    /// A file per run that failed for good.
    #[must_use]
    pub fn dead_letters(&self) -> PathBuf {
        self.root.join("queue").join("dead-letter")
    }

    /// A lock per node that has a broker of its own.
    #[must_use]
    pub fn brokers(&self) -> PathBuf {
        self.root.join("brokers")
    }

    /// A folder per agent with what it keeps of its conversation.
    #[must_use]
    pub fn agents(&self) -> PathBuf {
        self.root.join("agents")
    }

    /// A lock and a wake socket per process that claims runs.
    #[must_use]
    pub fn nodes(&self) -> PathBuf {
        self.root.join("nodes")
    }
}
