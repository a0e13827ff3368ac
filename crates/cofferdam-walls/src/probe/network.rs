//! What this process can reach, without sending a packet.

use std::net::{SocketAddr, UdpSocket};

use cofferdam_core::{InsideNetwork, Tried};
use rustix::io::Errno;

use crate::errno;

/// Addresses of the documentation ranges: routed like any outside address, and nobody's.
const OUTSIDE_V4: &str = "192.0.2.1:9";
const OUTSIDE_V6: &str = "[2001:db8::1]:9";

pub(super) fn measure() -> InsideNetwork {
    InsideNetwork {
        interfaces: interfaces(),
        ipv4: route("0.0.0.0:0", OUTSIDE_V4),
        ipv6: route("[::]:0", OUTSIDE_V6),
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

/// Connecting a datagram socket asks the kernel for a route and sends nothing.
fn route(from: &str, to: &str) -> Tried {
    let to: SocketAddr = to.parse().expect("the documentation addresses are well formed");
    match UdpSocket::bind(from).and_then(|socket| socket.connect(to)) {
        Ok(()) => Tried::Worked,
        Err(error) => Tried::Refused(
            error
                .raw_os_error()
                .map_or_else(|| error.to_string(), |raw| errno::name(Errno::from_raw_os_error(raw))),
        ),
    }
}
