//! What an engine said of itself, remembered for a minute: to answer, it starts each of its runtimes and asks for its
//! version, which costs as much as a fifth of a container.
//!
//! Only what was good enough is remembered, and only for the process that said it. A refusal is always fresh.

use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use bollard::models::SystemInfo;
use rustix::net::sockopt::socket_peercred;
use serde::{Deserialize, Serialize};

use super::engine::Engine;
use crate::clock::now_ms;
use crate::container::file_name_of;
use crate::linux::ProcessRecord;

/// An engine that a socket of systemd's stands for cannot be told from the one that it started later.
const FRESH_MS: u64 = 60_000;

#[derive(Serialize, Deserialize)]
struct Remembered {
    /// Who listened at the socket.
    listener: ProcessRecord,
    at_ms: u64,
    info: SystemInfo,
}

/// What this engine said a moment ago.
pub(super) fn recall(state: &Path, engine: &Engine) -> Option<SystemInfo> {
    let text = fs::read(path(state, engine)).ok()?;
    let known: Remembered = serde_json::from_slice(&text).ok()?;
    let fresh = now_ms().checked_sub(known.at_ms).is_some_and(|age| age < FRESH_MS);
    (fresh && listener(engine).ok()? == known.listener).then_some(known.info)
}

/// It is asked again if this cannot be written.
pub(super) fn remember(state: &Path, engine: &Engine, info: &SystemInfo) {
    let write = || -> io::Result<()> {
        let known =
            Remembered { listener: listener(engine)?, at_ms: now_ms(), info: what_is_looked_at(info) };
        let path = path(state, engine);
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        let scratch = path.with_extension(std::process::id().to_string());
        fs::write(&scratch, serde_json::to_vec(&known)?)?;
        fs::rename(&scratch, &path)
    };
    if let Err(error) = write() {
        tracing::debug!(%error, "what the engine said is not remembered");
    }
}

/// The rest says more of the machine than a file of ours has to.
fn what_is_looked_at(info: &SystemInfo) -> SystemInfo {
    let info = info.clone();
    SystemInfo {
        id: info.id,
        server_version: info.server_version,
        kernel_version: info.kernel_version,
        default_runtime: info.default_runtime,
        runtimes: info.runtimes,
        security_options: info.security_options,
        memory_limit: info.memory_limit,
        cpu_cfs_quota: info.cpu_cfs_quota,
        cpu_cfs_period: info.cpu_cfs_period,
        pids_limit: info.pids_limit,
        ..SystemInfo::default()
    }
}

fn listener(engine: &Engine) -> io::Result<ProcessRecord> {
    let stream = UnixStream::connect(engine.path())?;
    ProcessRecord::of(socket_peercred(&stream)?.pid.as_raw_nonzero().get())
}

fn path(state: &Path, engine: &Engine) -> PathBuf {
    let name = file_name_of(&[&engine.path().to_string_lossy()]);
    state.join("engines").join(format!("said{name}.json"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn what_an_engine_said_is_recalled_while_it_is_the_same_and_fresh() {
        let state = tempfile::tempdir().unwrap();
        let socket = state.path().join("docker.sock");
        let _listens = UnixListener::bind(&socket).unwrap();
        let engine = Engine::at(&socket);
        assert_eq!(recall(state.path(), &engine), None);
        let info = SystemInfo { pids_limit: Some(true), name: Some("secret".into()), ..Default::default() };
        remember(state.path(), &engine, &info);
        let recalled = recall(state.path(), &engine).unwrap();
        assert_eq!(recalled, SystemInfo { pids_limit: Some(true), ..Default::default() });

        let path = path(state.path(), &engine);
        let change = |change: &dyn Fn(&mut Remembered)| {
            let mut known: Remembered = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            change(&mut known);
            fs::write(&path, serde_json::to_vec(&known).unwrap()).unwrap();
        };
        change(&|known| known.at_ms -= FRESH_MS);
        assert_eq!(recall(state.path(), &engine), None, "it is old");
        remember(state.path(), &engine, &info);
        change(&|known| known.listener = ProcessRecord::of(1).unwrap());
        assert_eq!(recall(state.path(), &engine), None, "it is of another engine");
    }

    #[test]
    fn engines_do_not_share_a_file() {
        let state = Path::new("/state");
        let at = |socket: &str| path(state, &Engine::at(Path::new(socket)));
        assert_ne!(at("/run/docker.sock"), at("/run/user/1/docker.sock"));
    }
}
