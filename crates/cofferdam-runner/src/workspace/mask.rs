//! The mask, compiled.

use std::ffi::OsStr;
use std::path::Path;

use cofferdam_core::Mask;
use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};

/// Decides which paths are hidden.
#[derive(Debug)]
pub(crate) struct Matcher {
    hide: Patterns,
    show: Patterns,
}

#[derive(Debug)]
struct Patterns {
    /// Patterns without a slash, for a file's name.
    names: GlobSet,
    /// Patterns with a slash, for its path.
    paths: GlobSet,
}

impl Matcher {
    pub(crate) fn new(mask: &Mask) -> Result<Self, globset::Error> {
        Ok(Self { hide: Patterns::new(&mask.hide)?, show: Patterns::new(&mask.show)? })
    }

    /// Whether a path is hidden. `folder` is where it is, from the workspace's root.
    pub(crate) fn hides(&self, folder: &Path, name: &OsStr) -> bool {
        self.hide.matches(folder, name) && !self.show.matches(folder, name)
    }
}

impl Patterns {
    fn new(patterns: &[String]) -> Result<Self, globset::Error> {
        let mut names = GlobSetBuilder::new();
        let mut paths = GlobSetBuilder::new();
        for pattern in patterns {
            // `secrets/` means the folder; `/secrets` the one at the root.
            let trimmed = pattern.strip_suffix('/').unwrap_or(pattern);
            let set = if trimmed.contains('/') { &mut paths } else { &mut names };
            let trimmed = trimmed.strip_prefix('/').unwrap_or(trimmed);
            // `SERVER.KEY` is as secret as `server.key`.
            set.add(GlobBuilder::new(trimmed).literal_separator(true).case_insensitive(true).build()?);
        }
        Ok(Self { names: names.build()?, paths: paths.build()? })
    }

    fn matches(&self, folder: &Path, name: &OsStr) -> bool {
        (!self.names.is_empty() && self.names.is_match_candidate(&Candidate::new(name)))
            || (!self.paths.is_empty() && self.paths.is_match(folder.join(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides(mask: &Mask, path: &str) -> bool {
        let path = Path::new(path);
        Matcher::new(mask).unwrap().hides(path.parent().unwrap(), path.file_name().unwrap())
    }

    #[test]
    fn the_default_mask_hides_secrets_and_shows_examples() {
        let mask = Mask::default();
        for path in [".env", "a/.env.local", "tls/server.pem", "x.KEY", "id_ed25519", "id_rsa.old"] {
            assert!(hides(&mask, path), "{path}");
        }
        for path in [".env.example", "a/.env.local.sample", "id_rsa.pub", "id_generator.py", "env", "keys.rs"]
        {
            assert!(!hides(&mask, path), "{path}");
        }
    }

    #[test]
    fn a_pattern_with_a_slash_is_for_the_path() {
        let mask = Mask { hide: vec!["/top".into(), "a/*.txt".into(), "vault/".into()], show: vec![] };
        for (path, hidden) in
            [("top", true), ("b/top", false), ("a/x.txt", true), ("a/b/x.txt", false), ("b/vault", true)]
        {
            assert_eq!(hides(&mask, path), hidden, "{path}");
        }
    }
}
