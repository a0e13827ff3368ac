//! Where a program is, decided without looking: the caller's predicate looks.

use std::path::{Path, PathBuf};

/// Where programs may be.
pub struct Search<'a> {
    /// The value of `PATH` that the agent will have.
    pub path: &'a str,
    /// Further folders, which are tried after it.
    pub directories: &'a [PathBuf],
    /// Whether there is a file at this path that can be executed.
    pub is_program: &'a dyn Fn(&Path) -> bool,
}

impl Search<'_> {
    /// The first place that has this program. A name with a slash is a path, and is looked for nowhere
    /// else.
    #[must_use]
    pub fn find(&self, program: &str) -> Option<PathBuf> {
        if program.is_empty() {
            return None;
        }
        if program.contains('/') {
            return Some(PathBuf::from(program)).filter(|path| (self.is_program)(path));
        }
        // An empty or relative entry would mean the current folder, which is the repository: its author
        // could then replace any program.
        let of_path = self.path.split(':').map(Path::new).filter(|folder| folder.is_absolute());
        of_path
            .chain(self.directories.iter().map(PathBuf::as_path))
            .map(|folder| folder.join(program))
            .find(|candidate| (self.is_program)(candidate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(program: &str, there: &[&str]) -> Option<String> {
        let is_program = |path: &Path| there.iter().any(|&known| path == Path::new(known));
        let directories = [PathBuf::from("/opt/agents")];
        let search = Search { path: "/usr/bin::.:/bin", directories: &directories, is_program: &is_program };
        search.find(program).map(|path| path.display().to_string())
    }

    #[test]
    fn the_first_folder_of_path_wins_over_later_ones_and_over_the_directories() {
        let there = ["/opt/agents/x", "/bin/x", "/usr/bin/x"];
        assert_eq!(find("x", &there).as_deref(), Some("/usr/bin/x"));
        assert_eq!(find("x", &there[..2]).as_deref(), Some("/bin/x"));
        assert_eq!(find("x", &there[..1]).as_deref(), Some("/opt/agents/x"));
        assert_eq!(find("x", &[]), None);
    }

    #[test]
    fn a_name_with_a_slash_is_looked_for_nowhere_else() {
        assert_eq!(find("./x", &["./x"]).as_deref(), Some("./x"));
        assert_eq!(find("./x", &["/usr/bin/x", "/usr/bin/./x"]), None);
    }

    #[test]
    fn the_current_folder_is_never_searched() {
        assert_eq!(find("x", &["x", "./x"]), None);
        assert_eq!(find("", &["/usr/bin"]), None);
    }
}
