//! The state folder: where everything is that must outlive a process.

mod own;

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cofferdam_core::{NodeId, NodeName, PlaceId, ProcessName, ValueError};
use cofferdam_operations::random_bits;

pub use own::HomeError;

/// The state folder (`~/.cofferdam`, or `COFFERDAM_HOME`), closed to everybody else.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// Opens the state folder, making it if it is not there.
    ///
    /// # Errors
    /// If it cannot be made or closed to others, or if somebody else could have written what is in it.
    pub fn open(root: &Path) -> Result<Self, HomeError> {
        let make = |path: &Path| std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
        let root = std::path::absolute(root)?;
        own::check_above(&root)?;
        make(&root)?;
        let home = Self { root: own::close(&root)? };
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
            home.service(),
            home.logs(),
        ];
        for folder in folders {
            make(&folder)?;
        }
        // A folder for each run is made in these, and most go with it.
        [home.workspaces(), home.runs()].iter().for_each(|folder| cofferdam_sandbox::spread(folder));
        Ok(home)
    }

    /// Refuses a state folder that somebody else could have written, for whoever only reads from it. One that is not there
    /// says nothing, and is not made.
    ///
    /// # Errors
    /// [`HomeError`] says who, and what to type.
    pub fn check(root: &Path) -> Result<(), HomeError> {
        match root.symlink_metadata() {
            Ok(_) => own::check(&std::path::absolute(root)?).map(drop),
            Err(_) => Ok(()),
        }
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
        made_once(&self.root.join("place"), |random| PlaceId::new(now_ms, random))
    }

    /// The id of the node that people call this, made when it is first asked for: a node that is started again is known by
    /// it.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn node_id(&self, name: &NodeName, now_ms: u64) -> io::Result<NodeId> {
        made_once(&self.service().join(format!("{name}.id")), |random| NodeId::new(now_ms, random))
    }

    /// The ids of a service's nodes: its dispatcher, which is called as the service is, and those of
    /// [`node_name_of`](Self::node_name_of) that were ever started.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn nodes_of(&self, service: &NodeName) -> io::Result<BTreeSet<NodeId>> {
        let mut found = BTreeSet::new();
        for entry in std::fs::read_dir(self.service())? {
            let path = entry?.path();
            let name =
                path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".id"));
            let own = name.and_then(|name| name.strip_prefix(service.as_str()));
            let is_own = own.is_some_and(|rest| {
                let process = rest.strip_prefix('.').and_then(|process| process.parse().ok());
                rest.is_empty() || process.is_some_and(ProcessName::is_host_node)
            });
            if is_own && let Ok(id) = std::fs::read_to_string(&path)?.trim().parse() {
                found.insert(id);
            }
        }
        Ok(found)
    }

    /// What a service calls the node that one of its processes is; `None` for the broker, which is none.
    ///
    /// # Errors
    /// If the service's name leaves no room for it.
    pub fn node_name_of(service: &NodeName, process: ProcessName) -> Result<Option<NodeName>, ValueError> {
        match process {
            ProcessName::Broker => Ok(None),
            ProcessName::Dispatcher => Ok(Some(service.clone())),
            ProcessName::Node(..) => format!("{service}.{process}").parse().map(Some),
        }
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

    /// What is known of the service's processes, by their name.
    #[must_use]
    pub fn service(&self) -> PathBuf {
        self.root.join("service")
    }

    /// What the service's processes say.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// A lock and a wake socket per process that claims runs.
    #[must_use]
    pub fn nodes(&self) -> PathBuf {
        self.root.join("nodes")
    }
}

/// Reads an id from a file, or makes it. Of several that do this at once the first one counts, and nobody sees half an id.
fn made_once<T>(path: &Path, make: impl FnOnce(u128) -> T) -> io::Result<T>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>> + fmt::Display,
{
    let read = || match std::fs::read_to_string(path) {
        Ok(text) => text.trim().parse().map(Some).map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    if let Some(id) = read()? {
        return Ok(id);
    }
    let id = make(random_bits());
    let unnamed = path.with_file_name(format!("{id}.making"));
    std::fs::write(&unnamed, id.to_string())?;
    let linked = std::fs::hard_link(&unnamed, path);
    std::fs::remove_file(&unnamed)?;
    match linked {
        Ok(()) => Ok(id),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            read()?.ok_or_else(|| io::Error::other(format!("{} comes and goes", path.display())))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_known_by_its_name_and_a_folder_by_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let name = |text: &str| text.parse::<NodeName>().unwrap();
        let main = home.node_id(&name("main"), 1).unwrap();
        assert_eq!(home.node_id(&name("main"), 2).unwrap(), main);
        assert_ne!(home.node_id(&name("second"), 2).unwrap(), main);
        assert_eq!(home.place(1).unwrap(), home.place(2).unwrap());
    }

    #[test]
    fn many_at_once_agree_on_one_id() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::open(folder.path()).unwrap();
        let ids: Vec<NodeId> = std::thread::scope(|scope| {
            let home = &home;
            let ask = |now| scope.spawn(move || home.node_id(&NodeName::default(), now).unwrap());
            let asked: Vec<_> = (0..8).map(ask).collect();
            asked.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    }
}
