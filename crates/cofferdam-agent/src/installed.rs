//! How an agent is installed: under which names its parts are found on a machine. Whoever looks there is the runner.

/// How an agent is installed.
pub struct Installed {
    /// Where its own installer puts it, below the home.
    pub usual_places: &'static [&'static str],
    /// Packages that may hold the native program for a machine, the better ones first. Which of them runs there is
    /// decided by looking at the program.
    pub platform_packages: fn(&Machine) -> Vec<String>,
    /// Where the program may be in such a package.
    pub programs: fn(&Machine) -> Vec<String>,
    /// Where it may be in the agent's own package.
    pub own_programs: fn(&Machine) -> Vec<String>,
    /// Whether the script of its package is the agent itself where there is no native program, and needs an interpreter.
    pub may_be_script: bool,
    /// What it brings along, if it does.
    pub bundle: Option<Bundle>,
}

/// Programs that an agent looks for beside itself. The folder that holds them all is named by the target triple, or has
/// one of the marks.
pub struct Bundle {
    /// The folders of that folder that the agent's own program may be in.
    pub program_folders: &'static [&'static str],
    /// Folders that nothing else has.
    pub marks: &'static [&'static str],
    /// Folders with programs that the agent expects on PATH.
    pub path_entries: &'static [&'static str],
}

/// A machine, as far as names of packages depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// npm's name of its processor.
    pub node_arch: &'static str,
    /// The target triple of static programs for it.
    pub triple: &'static str,
    /// Whether builds that want AVX2 run on it. Other processors than x86-64 have no such builds.
    pub has_avx2: bool,
}

impl Machine {
    /// The packages of this prefix, with these endings.
    pub(crate) fn packages(&self, prefix: &str, endings: &[&str]) -> Vec<String> {
        endings.iter().map(|ending| format!("{prefix}-linux-{}{ending}", self.node_arch)).collect()
    }
}
