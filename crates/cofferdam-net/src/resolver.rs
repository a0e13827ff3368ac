//! Names to addresses, with a resolver of our own. The binary is static: the C library's resolver would load
//! the host's modules, and it would read one name in ways of its own.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;

/// Where the system says who resolves names, and which names it knows itself.
const SYSTEM_FILES: [&str; 2] = ["/etc/resolv.conf", "/etc/hosts"];

/// Resolves names; clones share one cache.
#[derive(Clone)]
pub(crate) struct Resolver {
    source: Source,
}

#[derive(Clone)]
enum Source {
    Given(Result<Arc<TokioResolver>, String>),
    System(Arc<Mutex<System>>),
}

/// The system's resolver, made anew when its files change: a laptop changes networks under a broker that
/// lives for days.
#[derive(Default)]
struct System {
    read: Option<([Option<SystemTime>; 2], Arc<TokioResolver>)>,
}

impl Resolver {
    /// Asks these name servers alone; those of the system, and its own file of hosts, without any.
    pub(crate) fn new(name_servers: &[SocketAddr]) -> Self {
        let source = if name_servers.is_empty() {
            Source::System(Arc::default())
        } else {
            Source::Given(given(name_servers))
        };
        Self { source }
    }

    /// Every address of a name, IPv4 first. The error says why there is none.
    pub(crate) async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let resolver = match &self.source {
            Source::Given(made) => made.clone()?,
            Source::System(system) => system.lock().unwrap_or_else(PoisonError::into_inner).current()?,
        };
        // Absolute, so that no search list turns a listed name into another one.
        let mut absolute = Name::from_ascii(name).map_err(|error| error.to_string())?;
        absolute.set_fqdn(true);
        match resolver.lookup_ip(absolute).await {
            Ok(answer) => Ok(answer.iter().map(|address| address.to_canonical()).collect()),
            Err(error) if error.is_nx_domain() => Err("there is no such name".to_owned()),
            Err(error) if error.is_no_records_found() => Err("the name has no address".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl System {
    fn current(&mut self) -> Result<Arc<TokioResolver>, String> {
        let changed = SYSTEM_FILES.map(|path| std::fs::metadata(path).and_then(|data| data.modified()).ok());
        if let Some((read, resolver)) = &self.read
            && *read == changed
        {
            return Ok(Arc::clone(resolver));
        }
        let mut builder = TokioResolver::builder_tokio()
            .map_err(|error| format!("/etc/resolv.conf names no server: {error}"))?;
        builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        let resolver = Arc::new(builder.build().map_err(|error| error.to_string())?);
        self.read = Some((changed, Arc::clone(&resolver)));
        Ok(resolver)
    }
}

fn given(name_servers: &[SocketAddr]) -> Result<Arc<TokioResolver>, String> {
    let at_port = |mut connection: ConnectionConfig, port| {
        connection.port = port;
        connection
    };
    let servers = name_servers.iter().map(|server| {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
        let connections = connections.map(|connection| at_port(connection, server.port()));
        NameServerConfig::new(server.ip(), true, connections.into())
    });
    let config = ResolverConfig::from_name_servers(servers.collect());
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    builder.options_mut().use_hosts_file = ResolveHosts::Never;
    Ok(Arc::new(builder.build().map_err(|error| error.to_string())?))
}
