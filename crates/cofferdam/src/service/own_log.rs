//! The log of a process of the service: a file that its stdout and stderr are.
//!
//! A process that is started again appends to the same file. Each keeps its own small: it renames the file and puts a new
//! one in the place of its descriptors, so that no line is lost.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use cofferdam_core::{NodeName, ProcessName, UnknownProcess};
use cofferdam_runner::Home;

/// A larger file is put aside. One such file is kept.
const LARGEST: u64 = 16 << 20;
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// Whose log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogOf {
    /// The supervisor and the API.
    Serve,
    /// A process that it keeps.
    Process(ProcessName),
}

impl LogOf {
    /// Those of a service, with the nodes of it that were ever started.
    pub(crate) fn all(home: &Home, service: &NodeName) -> Vec<Self> {
        let files = fs::read_dir(home.logs()).into_iter().flatten().flatten();
        let suffix = format!("-{service}.log");
        let named = files.filter_map(|file| {
            let name = file.file_name().to_str()?.strip_suffix(&suffix)?.parse().ok()?;
            ProcessName::is_host_node(name).then_some(name)
        });
        let mut nodes: Vec<ProcessName> = named.collect();
        nodes.sort();
        let first = [Self::Serve, Self::Process(ProcessName::Dispatcher), Self::Process(ProcessName::Broker)];
        first.into_iter().chain(nodes.into_iter().map(Self::Process)).collect()
    }
}

impl fmt::Display for LogOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serve => f.pad("serve"),
            Self::Process(name) => f.pad(&name.to_string()),
        }
    }
}

impl FromStr for LogOf {
    type Err = UnknownProcess;

    fn from_str(text: &str) -> Result<Self, UnknownProcess> {
        match text {
            "serve" => Ok(Self::Serve),
            // The command that the dispatcher is.
            "work" => Ok(Self::Process(ProcessName::Dispatcher)),
            _ => text.parse().map(Self::Process),
        }
    }
}

/// Where a log is.
pub(crate) fn log_path(home: &Home, log: LogOf, service: &NodeName) -> PathBuf {
    let stem = match log {
        LogOf::Process(ProcessName::Dispatcher) => "work".to_owned(),
        LogOf::Serve | LogOf::Process(_) => log.to_string(),
    };
    home.logs().join(format!("{stem}-{service}.log"))
}

/// Opens a log to append to. It may hold what people would rather keep to themselves.
pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).mode(0o600).open(path)
}

/// Keeps this process's log small for as long as the process lives. Does nothing where its stderr is something else.
pub(crate) fn keep_small(path: PathBuf) {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            if let Err(error) = put_aside(&path, io::stderr(), LARGEST, take_over) {
                tracing::warn!(path = %path.display(), %error, "a log could not be put aside");
            }
        }
    });
}

/// Puts the file aside if it is what is written to and has become too large.
fn put_aside(
    path: &Path,
    written: impl AsFd,
    largest: u64,
    take_over: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<bool> {
    let now = rustix::fs::fstat(written)?;
    let is_ours = fs::metadata(path).is_ok_and(|at| at.ino() == now.st_ino && at.dev() == now.st_dev);
    if !is_ours || u64::try_from(now.st_size).unwrap_or(0) <= largest {
        return Ok(false);
    }
    fs::rename(path, path.with_extension("log.1"))?;
    take_over(&open_log(path)?)?;
    Ok(true)
}

/// What is on the same file goes to the new one. A stdout that is something else stays.
fn take_over(file: &File) -> io::Result<()> {
    let (out, err) = (rustix::fs::fstat(io::stdout())?, rustix::fs::fstat(io::stderr())?);
    rustix::stdio::dup2_stderr(file)?;
    if (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino) {
        rustix::stdio::dup2_stdout(file)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_log_that_is_too_large_is_put_aside_and_no_line_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("work-main.log");
        let mut written = open_log(&path).unwrap();
        written.write_all(b"one\n").unwrap();
        let mut next = None;
        let mut aside = |written: &File, largest| {
            put_aside(&path, written, largest, |file| {
                next = Some(file.try_clone()?);
                Ok(())
            })
        };
        assert!(!aside(&written, 4).unwrap(), "it is not too large");
        assert!(aside(&written, 3).unwrap());
        let mut next = next.unwrap();
        next.write_all(b"two\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        assert_eq!(fs::read_to_string(folder.path().join("work-main.log.1")).unwrap(), "one\n");
    }

    #[test]
    fn what_is_not_the_log_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve-main.log");
        fs::write(&path, "x".repeat(100)).unwrap();
        let other = tempfile::tempfile().unwrap();
        assert!(!put_aside(&path, &other, 1, |_| Ok(())).unwrap());
        assert!(path.exists());
    }
}
