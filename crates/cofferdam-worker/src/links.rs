//! Links into the folders of an agent's CLI, to what outlives the sandbox.
//!
//! Of all that a CLI keeps only its conversations are to be there in the next run: its settings, hooks and logins are
//! beside them, and what an agent has changed there must not be.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use cofferdam_agent::Link;

/// Puts the links in their places, for an agent with these variables.
pub(crate) fn place(links: &[Link], env: &BTreeMap<String, String>) -> io::Result<()> {
    links.iter().try_for_each(|link| {
        let own = env.get(link.variable).map(PathBuf::from);
        let usual = || env.get("HOME").map(|home| Path::new(home).join(link.usual));
        let folder = own.or_else(usual).ok_or(io::ErrorKind::NotFound)?;
        std::fs::create_dir_all(&link.target)?;
        std::fs::create_dir_all(&folder)?;
        let path = folder.join(link.name);
        match symlink(&link.target, &path) {
            // Of a job that was begun before.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let there = std::fs::read_link(&path).is_ok_and(|target| target == Path::new(&link.target));
                if there { Ok(()) } else { Err(error) }
            }
            placed => placed,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(target: &Path) -> Link {
        let target = target.display().to_string();
        Link { variable: "CLAUDE_CONFIG_DIR", usual: ".claude", name: "projects", target }
    }

    #[test]
    fn what_is_kept_is_found_where_the_cli_looks_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let (home, kept) = (folder.path().join("home"), folder.path().join("kept/claude/projects"));
        let env = BTreeMap::from([("HOME".to_owned(), home.display().to_string())]);
        for _ in 0..2 {
            place(&[link(&kept)], &env).unwrap();
        }
        std::fs::write(home.join(".claude/projects/x"), "x").unwrap();
        assert!(kept.join("x").is_file());
        let own = BTreeMap::from([("CLAUDE_CONFIG_DIR".to_owned(), home.join("own").display().to_string())]);
        place(&[link(&kept)], &own).unwrap();
        assert!(home.join("own/projects/x").is_file());
    }

    #[test]
    fn what_is_there_already_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join(".claude/projects")).unwrap();
        let env = BTreeMap::from([("HOME".to_owned(), folder.path().display().to_string())]);
        let error = place(&[link(&folder.path().join("kept"))], &env).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }
}
