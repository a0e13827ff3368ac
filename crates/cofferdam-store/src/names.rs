//! Names to addresses, with a resolver of our own: the C library's would load the host's modules into a static program.

use std::net::IpAddr;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::LookupIpStrategy;

/// Every address of a name, IPv4 first. The system's files are read each time: they change under a process that lives
/// for days, and connections are made seldom. The error says why there is no address.
pub(crate) async fn resolve(name: &str) -> Result<Vec<IpAddr>, String> {
    let mut builder = TokioResolver::builder_tokio()
        .map_err(|error| format!("/etc/resolv.conf names no server: {error}"))?;
    builder.options_mut().ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    let resolver = builder.build().map_err(|error| error.to_string())?;
    match resolver.lookup_ip(name).await {
        Ok(answer) => Ok(answer.iter().map(|address| address.to_canonical()).collect()),
        Err(error) if error.is_nx_domain() => Err(format!("there is no name `{name}`")),
        Err(error) if error.is_no_records_found() => Err(format!("the name `{name}` has no address")),
        Err(error) => Err(error.to_string()),
    }
}
