//! What a fetch for somebody who is not the user of this machine is made with.

use std::path::PathBuf;

use cofferdam_core::RepoUrl;
use cofferdam_net::{AddressCheck, Dialer};
use cofferdam_sandbox::Tools;
use tokio::runtime::Handle;

use super::{Error, FetchFault};

/// Whoever speaks for somebody else fetches with this.
#[derive(Clone)]
pub struct CheckedFetch {
    /// Connects to the host.
    pub dialer: Dialer,
    /// Which addresses it may be at.
    pub check: AddressCheck,
    /// Makes the sandbox in which git reads what the host says.
    pub tools: Tools,
    /// Where the node's git is looked for that the sandbox can show.
    pub git: PathBuf,
    /// Where the connections are made.
    pub runtime: Handle,
    /// What the host may send, and what a mirror and a checkout may be.
    pub most_bytes: u64,
}

impl CheckedFetch {
    /// Several times the largest repository that people work on.
    pub const MOST_BYTES: u64 = 8 << 30;

    pub(super) fn too_large(&self, url: &RepoUrl) -> Error {
        let (fault, message) = self.too_large_fault();
        Error::Fetch { url: url.to_string(), fault, message }
    }

    pub(super) fn too_large_fault(&self) -> (FetchFault, String) {
        (FetchFault::Address, format!("it is larger than {} bytes", self.most_bytes))
    }
}
