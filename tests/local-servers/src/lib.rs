//! Servers on the loopback that tests reach through the broker: a name server, files over https, a git host.
//!
//! They are small and real: the git host is git's own `http-backend`, and https is signed by an
//! [`Authority`] that clients are told to trust. They know nothing of Cofferdam.

mod authority;
mod files;
mod git_host;
mod names;
mod serve;

pub use authority::Authority;
pub use files::Files;
pub use git_host::GitHost;
pub use names::NameServer;
