//! The only place that connects to the outside: resolve once, check each address, dial exactly that one.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use cofferdam_core::{AllowRule, Host, HostPort, is_public};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use crate::resolver::Resolver;

/// How many addresses of one name are tried.
const MAX_TRIED: usize = 4;

/// Connects to the outside; clones share the resolver's cache.
#[derive(Clone)]
pub(crate) struct Dialer {
    resolver: Resolver,
    connect_time: Duration,
}

/// Which addresses may be dialled.
#[derive(Debug, Clone)]
pub(crate) enum AddressCheck {
    /// Any: the caller of the broker chose the target, not the agent. The model's own base URL and the target
    /// of a forward.
    Trusted,
    /// Public ones, and those that one of these rules lists as an exact `address:port`. A rule with a *name*
    /// opens no private address: whoever answers for the name could point it at this machine (rebinding).
    Listed(Arc<[AllowRule]>),
}

/// Why nothing was connected to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    /// The name has no address.
    #[error("failed to resolve {target}: {reason}")]
    Resolve { target: HostPort, reason: String },
    /// None of the addresses may be dialled.
    #[error("{target} is at {address}, which is not a public address")]
    Private { target: HostPort, address: SocketAddr },
    /// Nobody answers there.
    #[error("failed to connect to {target} at {address}")]
    Connect {
        target: HostPort,
        address: SocketAddr,
        #[source]
        source: std::io::Error,
    },
    /// It took too long.
    #[error("{target} did not answer within {} s", after.as_secs())]
    TimedOut { target: HostPort, after: Duration },
}

impl DialError {
    /// The address that has to be allowed before the target can be reached.
    pub(crate) fn private(&self) -> Option<HostPort> {
        match self {
            Self::Private { address, .. } => {
                Some(HostPort { host: Host::Address(address.ip().to_canonical()), port: address.port() })
            }
            Self::Resolve { .. } | Self::Connect { .. } | Self::TimedOut { .. } => None,
        }
    }
}

impl Dialer {
    /// A dialer that asks these name servers, or those of the system without any.
    pub(crate) fn new(name_servers: &[SocketAddr], connect_time: Duration) -> Self {
        Self { resolver: Resolver::new(name_servers), connect_time }
    }

    /// Connects to a target. The address that was checked is the one that is dialled.
    ///
    /// # Errors
    /// [`DialError`] if it has no address that may be dialled, or none that answers.
    pub(crate) async fn connect(
        &self,
        target: &HostPort,
        check: &AddressCheck,
    ) -> Result<TcpStream, DialError> {
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

/// The addresses that may be dialled, as many as are tried.
fn permitted(
    target: &HostPort,
    addresses: &[IpAddr],
    check: &AddressCheck,
) -> Result<Vec<SocketAddr>, DialError> {
    let Some(&first) = addresses.first() else {
        return Err(DialError::Resolve {
            target: target.clone(),
            reason: "the name has no address".to_owned(),
        });
    };
    let may = |address: &IpAddr| match check {
        AddressCheck::Trusted => true,
        AddressCheck::Listed(rules) => is_public(*address) || lists_address(rules, *address, target.port),
    };
    let found: Vec<_> = addresses
        .iter()
        .filter(|address| may(address))
        .take(MAX_TRIED)
        .map(|&address| SocketAddr::new(address, target.port))
        .collect();
    if found.is_empty() {
        let address = SocketAddr::new(first, target.port);
        return Err(DialError::Private { target: target.clone(), address });
    }
    Ok(found)
}

fn lists_address(rules: &[AllowRule], address: IpAddr, port: u16) -> bool {
    let wanted = AllowRule::Exact(HostPort { host: Host::Address(address), port });
    rules.contains(&wanted)
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
