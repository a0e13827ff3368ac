//! A folder that the agent works in itself, and keeps.
//!
//! Whatever it does there stays: there is no layer and no diff. Hidden files are covered, not moved.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cofferdam_agent::profile;
use cofferdam_core::{Agent, Policy};
use cofferdam_sandbox::{Cover, Refusal, Workspace};

use super::base::{Base, now_ns};
use super::git_folders::GitFolders;
use super::mask::Matcher;
use super::survey::{Owners, survey_tree};
use super::veil::Veil;
use super::view::{Placing, View};
use super::{Error, Prepared, RepositoryOwner, make_folder, target};
use crate::raw_path::escape;

/// Each cover is a mount.
const MOST_COVERS: usize = 1_000;

/// Folders of the system's, besides those of its root. An agent that owned one would own the machine.
const SYSTEM: [&str; 4] = ["/run/systemd", "/usr/bin", "/usr/lib", "/usr/sbin"];

/// Folders in a home that hold keys, or programs that are started at the next login, besides those of the agents' logins.
const PRIVATE: [&str; 12] = [
    ".aws",
    ".azure",
    ".bashrc.d",
    ".cargo",
    ".config",
    ".docker",
    ".gnupg",
    ".kube",
    ".local",
    ".mozilla",
    ".ssh",
    "bin",
];

/// Refuses a folder that nobody can mean to give to an agent: the whole machine, a home, our own state, and whatever is
/// above or in them. `path` has no symlinks.
///
/// # Errors
/// [`Refusal`] says why, and what to type.
pub fn check_direct(path: &Path, state: &Path, home: Option<&Path>) -> Result<(), Refusal> {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let refuse = |why: &str| {
        Err(Refusal::new(
            format!("an agent cannot own {}: {why}", path.display()),
            "name a folder of its own as its working_directory, such as `~/agents/coder`",
        ))
    };
    let state = real(state);
    if state.starts_with(path) || path.starts_with(&state) {
        return refuse("it holds the state of Cofferdam, or is part of it");
    }
    if let Some(home) = home.map(real) {
        if home.starts_with(path) {
            return refuse("it is your home, or above it");
        }
        let logins = Agent::ALL.into_iter().flat_map(|agent| profile(agent).login.files);
        let mut private = PRIVATE.iter().chain(logins.map(|login| &login.folder));
        if let Some(private) = private.find(|name| path.starts_with(home.join(name))) {
            return refuse(&format!("`~/{private}` is yours alone"));
        }
    }
    if path.components().count() < 3 {
        return refuse("it holds more than one agent's work");
    }
    let mut system = target::OF_THE_SYSTEM.iter().chain(&SYSTEM);
    match system.find(|system| path.starts_with(system) || Path::new(system).starts_with(path)) {
        Some(system) => refuse(&format!("{system} belongs to the system")),
        None => Ok(()),
    }
}

/// Prepares a folder of the caller's. `own` is a new folder for what is shown instead of hidden files.
pub(super) fn prepare_direct(own: &Path, root: &Path, policy: &Policy) -> Result<Prepared, Error> {
    let owner = RepositoryOwner::of(root).map_err(|error| Error::reading(root, error))?;
    let survey = survey_tree(root, &Matcher::new(&policy.mask)?, Owners::Any)?;
    let mut git = GitFolders::find(root, owner);
    let mut warnings = Vec::new();
    if let Some(outside) = git.outside(root) {
        // Shown through a layer, what the agent commits would be gone; shown itself, it would be more than its folder.
        warnings.push(format!("git does not work inside: its folder {} is not in this one", escape(outside)));
        git = GitFolders::default();
    }
    let view = View::of(root, &git, &survey, Placing::Overlay, owner)?;
    let covers = Covers::make(own)?.over(root, &view.tree)?;
    let base =
        Base { layers: Vec::new(), manifest: None, index: None, exclude: None, handed_over_ns: now_ns() };
    let mut prepared = Prepared::new(Workspace::Direct { path: root.to_owned(), covers }, base);
    prepared.hidden = view.hidden;
    prepared.stripped = view.stripped;
    prepared.warnings = warnings;
    prepared.alias = Some(root.to_owned());
    prepared.target = target::of(policy, root);
    Ok(prepared)
}

/// What is shown instead of hidden files.
struct Covers {
    own: PathBuf,
    file: PathBuf,
    folder: PathBuf,
}

impl Covers {
    fn make(own: &Path) -> Result<Self, Error> {
        let own = own.join("covers");
        make_folder(&own)?;
        let (file, folder) = (own.join("file"), own.join("folder"));
        write(&file, b"")?;
        let made = fs::DirBuilder::new().mode(0o755).create(&folder);
        made.map_err(|error| Error::writing(&folder, error))?;
        Ok(Self { own, file, folder })
    }

    fn over(&self, root: &Path, veil: &Veil) -> Result<Vec<Cover>, Error> {
        let mut covers = Vec::new();
        for (path, content) in veil.entries() {
            let real = root.join(path);
            let kind = real.symlink_metadata().map_err(|error| Error::reading(&real, error))?.file_type();
            let with = match content {
                // A link cannot be covered, and shows nothing that is not hidden or seen under its own name.
                _ if kind.is_symlink() => continue,
                None if kind.is_dir() => self.folder.clone(),
                None => self.file.clone(),
                Some(content) => {
                    let file = self.own.join(covers.len().to_string());
                    write(&file, content)?;
                    file
                }
            };
            covers.push(Cover { path: path.to_owned(), with });
        }
        if covers.len() > MOST_COVERS {
            return Err(Error::TooManyHidden { path: root.to_owned(), count: covers.len() });
        }
        Ok(covers)
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), Error> {
    use std::io::Write as _;
    let opened = fs::OpenOptions::new().write(true).create_new(true).mode(0o444).open(path);
    opened.and_then(|mut file| file.write_all(content)).map_err(|error| Error::writing(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_more_than_an_agents_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let home = place.path().canonicalize().unwrap().join("home/me");
        let state = home.join(".cofferdam");
        for folder in [".cofferdam/runs", ".ssh", "agents/coder"] {
            fs::create_dir_all(home.join(folder)).unwrap();
        }
        let check = |path: &Path| check_direct(path, &state, Some(&home));
        for path in
            ["/", "/etc", "/etc/ssh", "/usr", "/usr/bin", "/home", "/proc/self", "/dev/shm", "/var", "/tmp"]
        {
            let refusal = check(Path::new(path)).unwrap_err();
            assert!(
                refusal.problem.contains(path) && refusal.remedy.contains("working_directory"),
                "{refusal:?}"
            );
        }
        for path in [&home, home.parent().unwrap(), &state, &state.join("runs"), &home.join(".ssh")] {
            assert!(check(path).is_err(), "{}", path.display());
        }
        assert_eq!(check(&home.join("agents/coder")), Ok(()));
    }

    #[test]
    fn hidden_files_are_covered_and_stay() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("work");
        for folder in [".git", "keys.pem"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let url = "[remote \"o\"]\n\turl = https://me:secret@example.com/x\n";
        fs::write(root.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::create_dir_all(root.join(".git/objects")).unwrap();
        fs::create_dir_all(root.join(".git/refs")).unwrap();
        fs::write(root.join(".git/config"), url).unwrap();
        fs::write(root.join(".env"), "secret").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.join("link.key")).unwrap();
        let own = place.path().join("own");
        fs::create_dir(&own).unwrap();
        let prepared = prepare_direct(&own, &root, &Policy::default()).unwrap();
        let Workspace::Direct { path, covers } = &prepared.workspace else { panic!("{prepared:?}") };
        assert_eq!(*path, root);
        let covered: Vec<_> = covers.iter().map(|cover| cover.path.to_str().unwrap()).collect();
        assert_eq!(covered, [".env", ".git/config", "keys.pem"]);
        let config = fs::read_to_string(&covers[1].with).unwrap();
        assert!(config.contains("example.com/x") && !config.contains("secret"), "{config}");
        assert!(covers[2].with.is_dir());
        assert_eq!(fs::read_to_string(root.join(".env")).unwrap(), "secret");
    }
}
