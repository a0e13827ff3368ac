//! The only way out of a sealed sandbox. The broker sits on the host, holds the secrets, and lets through
//! what the run's policy lists.
//!
//! Main type: [`Broker`], a cloneable handle. For each attempt it is given a [`Grant`] and listens on Unix
//! sockets in that attempt's folder; so it knows which attempt speaks without any token. Behind a socket are
//! the model routes (`model/`), the run's own git repository (`git/`) and the forward proxy (`proxy/`).
//!
//! This crate knows no store and no sandbox: what happens is told to a [`Ledger`], and secrets are asked for
//! through [`Secrets`]. It never reads the environment (but for the system's certificates, which `SSL_CERT_FILE`
//! may move), and it connects through `cofferdam-net` alone.

mod accept;
mod attempt;
mod body;
mod broker;
mod forward;
mod git;
mod grant;
mod http1;
mod ledger;
mod memory;
mod model;
mod options;
mod places;
mod prices;
mod proxy;
mod recorder;
mod refusal;
mod rules;
mod served;
mod socket;
#[cfg(test)]
mod test_ledger;

pub use broker::{Broker, OpenError};
pub use grant::{GitGrant, Grant, ModelGrant};
pub use ledger::{CallBegun, CallEnded, CallId, Ledger, LedgerError};
pub use options::{
    Bounds, GitCredential, GitRepository, Locked, NoGitCredential, Options, Price, PriceTable, Secrets,
    Upstream,
};
pub use prices::long_from;
pub use socket::connect;

#[doc(hidden)]
pub mod fuzzing;
