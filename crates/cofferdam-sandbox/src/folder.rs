//! The folder of one sandbox on the host: what is left of it when every process is gone.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use cofferdam_core::SandboxId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::random::random;
use crate::remove::remove_tree;
use crate::spread::spread;

/// What the name of a folder begins with while it is being removed.
const REMOVING: &str = "removing-";

/// The folder of one sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    id: SandboxId,
    path: PathBuf,
}

impl Folder {
    /// The folder of this sandbox below the backend's own.
    pub(crate) fn new(parent: &Path, id: &SandboxId) -> Self {
        Self { id: id.clone(), path: parent.join(id.to_string()) }
    }

    /// The folder at this path; its name is the sandbox's.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let id = name.parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Self { id, path: path.to_owned() })
    }

    /// Every sandbox that has a folder below the backend's own.
    pub(crate) fn list(parent: &Path) -> io::Result<Vec<SandboxId>> {
        let entries = match fs::read_dir(parent) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut ids = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            let name = name.to_str().map(|name| name.strip_prefix(REMOVING).unwrap_or(name));
            ids.extend(name.and_then(|name| name.parse::<SandboxId>().ok()));
        }
        ids.sort();
        ids.dedup();
        Ok(ids)
    }

    pub(crate) fn create(&self) -> io::Result<()> {
        let make = || fs::DirBuilder::new().mode(0o700).create(&self.path);
        match (make(), self.path.parent()) {
            (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound => {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
                spread(parent);
                make()
            }
            (made, _) => made,
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.path.is_dir() || self.leaving().path.is_dir()
    }

    /// Takes the folder out of the way of whoever knows it by its path, and returns it under the name that
    /// it has from then on. A shim that has not recorded itself by then cannot start any more.
    pub(crate) fn leave(&self) -> io::Result<Self> {
        let leaving = self.leaving();
        if self.path.is_dir() {
            remove_tree(&leaving.path)?;
            fs::rename(&self.path, &leaving.path)?;
        }
        Ok(leaving)
    }

    /// Where it is while it is being removed.
    pub(crate) fn leaving(&self) -> Self {
        let path = self.path.with_file_name(format!("{REMOVING}{}", self.id));
        Self { id: self.id.clone(), path }
    }

    /// Gives the folder a ticket: whoever is started for it shows it, and is known from whoever was started for an earlier
    /// folder at the same path.
    pub(crate) fn issue_ticket(&self) -> io::Result<String> {
        let ticket = format!("{:032x}", u128::from_ne_bytes(random()?));
        self.write(Record::Ticket, &ticket)?;
        Ok(ticket)
    }

    /// Holds the folder, if this is its ticket. What is written to what is held stays in this folder, whatever becomes of
    /// its path.
    pub(crate) fn hold(&self, ticket: &str) -> io::Result<Held> {
        let folder = fs::File::open(&self.path)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        let held = Held { folder: Self { id: self.id.clone(), path }, open: folder };
        match held.folder.read::<String>(Record::Ticket)?.as_deref() == Some(ticket) {
            true => Ok(held),
            false => Err(io::Error::new(io::ErrorKind::NotFound, "the folder is another sandbox's by now")),
        }
    }

    pub(crate) fn id(&self) -> &SandboxId {
        &self.id
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A private folder inside, made on the spot.
    pub(crate) fn make(&self, name: impl AsRef<Path>) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }

    /// Everything the worker has printed.
    pub(crate) fn worker_output(&self) -> PathBuf {
        self.path.join("worker.out")
    }

    /// What the launcher or the worker said on stderr: nothing, unless it crashed.
    pub(crate) fn worker_errors(&self) -> PathBuf {
        self.path.join("worker.err")
    }

    /// Reads a record; `None` if it was never written.
    pub(crate) fn read<T: DeserializeOwned>(&self, record: Record) -> io::Result<Option<T>> {
        match fs::read(self.path.join(record.file())) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether there is such a record.
    pub(crate) fn has(&self, record: Record) -> bool {
        self.path.join(record.file()).exists()
    }

    /// Writes a record so that a reader sees all of it or nothing. It is not forced to the disk: what it tells
    /// of are processes, and a power cut ends those too. A run whose end nobody recorded is then lost.
    pub(crate) fn write<T: Serialize>(&self, record: Record, value: &T) -> io::Result<()> {
        let scratch = self.path.join(format!("{}.new", record.file()));
        // In one piece: a serializer writes a token at a time, and a plan has thousands.
        fs::write(&scratch, serde_json::to_vec(value)?)?;
        fs::rename(&scratch, self.path.join(record.file()))
    }
}

/// A folder that is held open.
pub(crate) struct Held {
    /// The folder, by what holds it.
    pub(crate) folder: Folder,
    open: fs::File,
}

impl Held {
    /// Whether the folder is still at this path.
    pub(crate) fn is_at(&self, path: &Path) -> io::Result<bool> {
        let own = self.open.metadata()?;
        Ok(fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) == (own.dev(), own.ino())))
    }
}

/// What is recorded in the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// What the shim that was started for it has to show.
    Ticket,
    /// What the shim was told to do.
    Shim,
    /// What the launcher was told to build.
    Plan,
    /// The container that was asked for.
    Container,
    /// What a workspace was that is a copy.
    HandedOver,
    /// That its container was started.
    Started,
    /// The first process of its container, where that is one of this kernel.
    First,
    /// That we ended it ourselves.
    Killed,
    /// That the container is gone.
    Removed,
    /// The shim's process.
    Process,
    /// What the outside measured.
    Outside,
    /// How it ended.
    Exit,
}

impl Record {
    fn file(self) -> &'static str {
        match self {
            Self::Ticket => "ticket.json",
            Self::Shim => "shim.json",
            Self::Plan => "plan.json",
            Self::Container => "container.json",
            Self::HandedOver => "handed-over.json",
            Self::Started => "started.json",
            Self::First => "first.json",
            Self::Killed => "killed.json",
            Self::Removed => "removed.json",
            Self::Process => "process.json",
            Self::Outside => "outside.json",
            Self::Exit => "exit.json",
        }
    }
}
