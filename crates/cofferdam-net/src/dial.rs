//! The only place that connects to the outside: resolve once, check each address, dial exactly that one.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::{AllowRule, Host, HostPort, is_public};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::own_address::is_own;
use crate::resolver::Resolver;

/// How many addresses of one name are tried.
const MAX_TRIED: usize = 4;

/// Connects to the outside; clones share the resolver's cache.
#[derive(Clone)]
pub struct Dialer {
    resolver: Resolver,
    connect_time: Duration,
}

/// Which addresses may be dialled.
#[derive(Debug, Clone)]
pub enum AddressCheck {
    /// Any: somebody whose word counts chose the target, such as the model's own base URL or the target of a forward.
    Trusted,
    /// Public ones that are not this machine's own, and those that one of these rules lists as an exact `address:port`. A
    /// rule with a *name* opens no other: whoever answers for the name could point it at this machine (rebinding).
    Listed(Arc<[AllowRule]>),
}

/// Why nothing was connected to.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The name has no address.
    #[error("failed to resolve {target}: {reason}")]
    Resolve {
        /// What was to be dialled.
        target: HostPort,
        /// Why there is no address, for people.
        reason: String,
    },
    /// None of the addresses may be dialled.
    #[error("{target} is at {address}, which is not a public address")]
    Private {
        /// What was to be dialled.
        target: HostPort,
        /// Where it is.
        address: SocketAddr,
    },
    /// The same of a public address, since it is this machine's own.
    #[error("{target} is at {address}, which is an address of this machine")]
    ThisMachine {
        /// What was to be dialled.
        target: HostPort,
        /// Where it is.
        address: SocketAddr,
    },
    /// It is not known whose the address is.
    #[error("failed to find out whether {address}, where {target} is, is an address of this machine")]
    Unknown {
        /// What was to be dialled.
        target: HostPort,
        /// Where it is.
        address: SocketAddr,
        /// Why the kernel could not be asked.
        #[source]
        source: std::io::Error,
    },
    /// Nobody answers there.
    #[error("failed to connect to {target} at {address}")]
    Connect {
        /// What was to be dialled.
        target: HostPort,
        /// Where it is.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// It took too long.
    #[error("{target} did not answer within {} s", after.as_secs())]
    TimedOut {
        /// What was to be dialled.
        target: HostPort,
        /// How long it had.
        after: Duration,
    },
}

impl DialError {
    /// The address that has to be allowed before the target can be reached.
    #[must_use]
    pub fn private(&self) -> Option<HostPort> {
        match self {
            Self::Private { address, .. } | Self::ThisMachine { address, .. } => {
                Some(HostPort { host: Host::Address(address.ip().to_canonical()), port: address.port() })
            }
            Self::Resolve { .. } | Self::Unknown { .. } | Self::Connect { .. } | Self::TimedOut { .. } => {
                None
            }
        }
    }
}

impl Dialer {
    /// A dialer that asks these name servers, or those of the system without any.
    #[must_use]
    pub fn new(name_servers: &[SocketAddr], connect_time: Duration) -> Self {
        Self { resolver: Resolver::new(name_servers), connect_time }
    }

    /// Connects to a target. The address that was checked is the one that is dialled.
    ///
    /// # Errors
    /// [`DialError`] if it has no address that may be dialled, or none that answers.
    pub async fn connect(&self, target: &HostPort, check: &AddressCheck) -> Result<TcpStream, DialError> {
        let deadline = Instant::now() + self.connect_time;
        let timed_out = || DialError::TimedOut { target: target.clone(), after: self.connect_time };
        let addresses = timeout_at(deadline, self.addresses(target)).await.map_err(|_| timed_out())??;
        let addresses = permitted(target, &addresses, check)?;
        let mut failure = timed_out();
        for (tried, &address) in addresses.iter().enumerate() {
            // A silent address must not use up the time of those behind it.
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(addresses.len() - tried).unwrap_or(1);
            match timeout_at(Instant::now() + share, TcpStream::connect(address)).await {
                Ok(Ok(stream)) => {
                    // Failing to set it costs speed and nothing else.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(source)) => {
                    failure = DialError::Connect { target: target.clone(), address, source };
                }
                Err(_) => failure = timed_out(),
            }
        }
        Err(failure)
    }

    async fn addresses(&self, target: &HostPort) -> Result<Vec<IpAddr>, DialError> {
        match &target.host {
            Host::Address(address) => Ok(vec![*address]),
            Host::Name(name) => self
                .resolver
                .resolve(name)
                .await
                .map_err(|reason| DialError::Resolve { target: target.clone(), reason }),
        }
    }
}

/// The addresses that may be dialled, as many as are tried. If none may, what is wrong with the first.
fn permitted(
    target: &HostPort,
    addresses: &[IpAddr],
    check: &AddressCheck,
) -> Result<Vec<SocketAddr>, DialError> {
    let mut found = Vec::new();
    let mut fault = None;
    for &address in addresses {
        let address = SocketAddr::new(address, target.port);
        match examine(target, address, check) {
            Ok(()) => found.push(address),
            Err(error) => fault = fault.or(Some(error)),
        }
        if found.len() == MAX_TRIED {
            break;
        }
    }
    match fault {
        _ if !found.is_empty() => Ok(found),
        Some(fault) => Err(fault),
        None => {
            let reason = "the name has no address".to_owned();
            Err(DialError::Resolve { target: target.clone(), reason })
        }
    }
}

/// What is wrong with one address.
fn examine(target: &HostPort, address: SocketAddr, check: &AddressCheck) -> Result<(), DialError> {
    let rules = match check {
        AddressCheck::Trusted => return Ok(()),
        AddressCheck::Listed(rules) => rules,
    };
    if lists_address(rules, address.ip(), address.port()) {
        return Ok(());
    }
    let target = target.clone();
    if !is_public(address.ip()) {
        return Err(DialError::Private { target, address });
    }
    match is_own(address.ip()) {
        Ok(false) => Ok(()),
        Ok(true) => Err(DialError::ThisMachine { target, address }),
        Err(source) => Err(DialError::Unknown { target, address, source }),
    }
}

fn lists_address(rules: &[AllowRule], address: IpAddr, port: u16) -> bool {
    let wanted = AllowRule::Exact(HostPort { host: Host::Address(address), port });
    rules.contains(&wanted)
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
