//! What is attacked.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What is attacked. The test that starts the program fills it in: things of the host that must be out of
/// reach really exist there, or "not found" would prove nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Target {
    /// A folder that the program may write in.
    pub workspace: PathBuf,
    /// The worker, as a process id that the program sees: 1 in a sandbox, a stand-in in the control.
    pub worker_pid: i32,
    /// A process that may die: the worker again in a sandbox, another stand-in in the control.
    pub expendable_pid: i32,
    /// A process of the host by its id there, above any id that a sandbox gives out.
    pub host_pid: i32,
    /// The name (`comm`) of that process.
    pub host_process: String,
    /// The host's namespaces by kind (`mnt`, `pid`, …).
    pub host_namespaces: BTreeMap<String, u64>,
    /// Control sockets of container engines; at least one of them listens on the host.
    pub engine_sockets: Vec<PathBuf>,
    /// A Unix socket in the host's file system with a listener.
    pub host_socket: PathBuf,
    /// The name of an abstract Unix socket of the host with a listener.
    pub host_abstract_socket: String,
    /// A port of the host's loopback with a listener.
    pub host_port: u16,
    /// An address outside, to which the host has a route.
    pub outside_address: SocketAddr,
    /// An address of the host that is not its loopback, with a listener.
    pub host_address: SocketAddr,
    /// Another container of the same engine, with a listener; the host again where there is none.
    pub neighbour: SocketAddr,
    /// A key of the caller's, each byte one higher, so that what tells the program to look for it is not what it
    /// finds.
    pub shifted_secret: Vec<u8>,
    /// The caller's home, with a file `.ssh/id_ed25519`.
    pub home: PathBuf,
    /// A folder of the host that the caller may write in, and which is none of the sandbox's business.
    pub host_folder: PathBuf,
    /// A folder that is mounted writable and that only Landlock closes.
    pub canary: PathBuf,
    /// A set-user-id copy of this program that belongs to root.
    pub set_user_id_program: PathBuf,
    /// How many processes to start: more than the limit.
    pub processes: u32,
    /// How many files to open: more than the limit.
    pub open_files: u32,
}
