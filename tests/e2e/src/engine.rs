//! The real container engine, as `./dev test` and `./dev engine` start it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A private engine with the images of the tests. Tests may do what they like in it, to what is theirs.
#[derive(Debug, Clone)]
pub struct Engine {
    address: String,
    docker: PathBuf,
    base: String,
    small: String,
    worker: String,
}

impl Engine {
    /// The engine that `COFFERDAM_TEST_DOCKER` names. Without it a test says on stderr that it is skipped, and
    /// returns; in CI, where it must be, it fails.
    ///
    /// # Panics
    /// If there is none in CI, or only a part of what names it is set.
    #[must_use]
    pub fn find() -> Option<Self> {
        let Some(address) = named("COFFERDAM_TEST_DOCKER") else {
            assert!(!in_ci(), "there is no container engine; {WHAT_TO_DO}");
            eprintln!("skipped: there is no container engine; {WHAT_TO_DO}");
            return None;
        };
        let also = |name| named(name).unwrap_or_else(|| panic!("{name} is not set; {WHAT_TO_DO}"));
        Some(Self {
            address,
            docker: also("COFFERDAM_TEST_DOCKER_COMMAND").into(),
            base: also("COFFERDAM_TEST_IMAGE_BASE"),
            small: also("COFFERDAM_TEST_IMAGE_SMALL"),
            worker: also("COFFERDAM_TEST_IMAGE_WORKER"),
        })
    }

    /// Where the engine listens, in the form of `DOCKER_HOST`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A `docker` command that speaks to this engine, whatever its environment says: also a runtime command.
    #[must_use]
    pub fn docker_command(&self) -> &Path {
        &self.docker
    }

    /// Calls [`docker_command`](Self::docker_command).
    #[must_use]
    pub fn docker<const N: usize>(&self, arguments: [&str; N]) -> Command {
        let mut command = Command::new(&self.docker);
        command.args(arguments);
        command
    }

    /// A `podman` command with the same images. Only root has one: without a delegated control group of version 2
    /// an ordinary user's podman holds no limits.
    ///
    /// # Panics
    /// If root has none in CI.
    #[must_use]
    pub fn podman_command(&self) -> Option<PathBuf> {
        let podman = named("COFFERDAM_TEST_PODMAN").map(PathBuf::from);
        if podman.is_none() {
            assert!(!in_ci() || !rustix::process::geteuid().is_root(), "there is no podman; {WHAT_TO_DO}");
            eprintln!("skipped: there is no podman; {WHAT_TO_DO}");
        }
        podman
    }

    /// A small Debian with Python and the clients of PostgreSQL and Redis, which the worker image is built from.
    #[must_use]
    pub fn base_image(&self) -> &str {
        &self.base
    }

    /// Busybox and nothing else: what starts quickest.
    #[must_use]
    pub fn small_image(&self) -> &str {
        &self.small
    }

    /// What `deploy/worker.Dockerfile` makes of the base.
    #[must_use]
    pub fn worker_image(&self) -> &str {
        &self.worker
    }
}

fn named(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false")
}

const WHAT_TO_DO: &str = "run ./dev test as root, or type what ./dev engine prints";
