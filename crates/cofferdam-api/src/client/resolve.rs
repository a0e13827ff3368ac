//! Names to addresses, with a resolver of our own: the binary is static, and the C library's would load the host's
//! modules.

use std::net::SocketAddr;
use std::sync::Arc;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::OnceCell;

/// Asks the system's name servers and its file of hosts, which are read at the first question.
#[derive(Default)]
pub(super) struct OwnResolver {
    resolver: Arc<OnceCell<TokioResolver>>,
}

impl Resolve for OwnResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let resolver = Arc::clone(&self.resolver);
        Box::pin(async move {
            let resolver = resolver.get_or_try_init(|| async { build() }).await?;
            let answer = resolver.lookup_ip(name.as_str()).await?;
            // The port is the address's own.
            let found: Vec<SocketAddr> = answer.iter().map(|address| SocketAddr::new(address, 0)).collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

fn build() -> Result<TokioResolver, hickory_resolver::net::NetError> {
    let mut builder = TokioResolver::builder_tokio()?;
    builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    builder.build()
}
