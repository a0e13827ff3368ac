//! What this process can reach, without sending a packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use cofferdam_core::{InsideNetwork, Tried};
use rustix::io::Errno;

use crate::errno;

/// Addresses of the documentation ranges: routed like any outside address, and nobody's.
const OUTSIDE_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const OUTSIDE_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
/// The discard service.
const PORT: u16 = 9;

pub(super) fn measure() -> InsideNetwork {
    InsideNetwork {
        interfaces: interfaces(),
        ipv4: route(Ipv4Addr::UNSPECIFIED.into(), OUTSIDE_V4),
        ipv6: route(Ipv6Addr::UNSPECIFIED.into(), OUTSIDE_V6),
    }
}

/// The interfaces of the own network namespace. Where they cannot be listed, one that is not loopback is
/// reported, so that nobody takes "cannot look" for "none".
fn interfaces() -> Vec<String> {
    match std::fs::read_to_string("/proc/self/net/dev") {
        Ok(table) => table
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, _)| name.trim().to_owned())
            .collect(),
        Err(_) => vec!["unknown".to_owned()],
    }
}

/// Connecting a datagram socket asks the kernel for a route and sends nothing. Addresses are never text here:
/// text could be a name, and would link the resolver into a binary that must not have one.
fn route(from: IpAddr, to: IpAddr) -> Tried {
    let (from, to) = (SocketAddr::new(from, 0), SocketAddr::new(to, PORT));
    match UdpSocket::bind(from).and_then(|socket| socket.connect(to)) {
        Ok(()) => Tried::Worked,
        Err(error) => Tried::Refused(
            error
                .raw_os_error()
                .map_or_else(|| error.to_string(), |raw| errno::name(Errno::from_raw_os_error(raw))),
        ),
    }
}
