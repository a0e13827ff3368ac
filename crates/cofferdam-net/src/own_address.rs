//! Whether an address belongs to this machine, as the kernel's routes say at this moment.
//!
//! The attack: a machine with a public address of its own, and a service on it that only its own users may reach. A listed
//! name that leads to that address would have the broker connect to the service, from this machine. A list of addresses
//! that was read earlier would miss one that was added since, and whole networks that are routed to this machine; so the
//! kernel is asked, about each address, where it would send to it.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// The numbers of `linux/netlink.h` and `linux/rtnetlink.h`.
const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTA_DST: u16 = 1;
const RTN_LOCAL: u8 = 2;
const RTN_ANYCAST: u8 = 4;

/// `struct nlmsghdr`, and `struct rtmsg` behind it.
const HEADER: usize = 16;
const ROUTE: usize = 12;
/// Where the kind of a route is in `struct rtmsg`.
const ROUTE_KIND: usize = 7;

/// The kernel answers while it is asked; this is for one that does not.
const ANSWERS_WITHIN: Duration = Duration::from_secs(1);

/// Whether the kernel would deliver what is sent to this address to this machine itself.
///
/// # Errors
/// If the kernel cannot be asked, or its answer is none. Nothing is known then.
pub(crate) fn is_own(address: IpAddr) -> io::Result<bool> {
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None, // NETLINK_ROUTE
    )?;
    // Connected to the kernel: what another process sends to this socket is refused.
    rustix::net::connect(&socket, &SocketAddrNetlink::new(0, 0))?;
    set_socket_timeout(&socket, Timeout::Recv, Some(ANSWERS_WITHIN))?;
    rustix::net::send(&socket, &question(address), SendFlags::empty())?;
    let mut answer = [0; 4096];
    let (_, length) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty())?;
    read(&answer[..length.min(answer.len())])
}

/// "Which way does this address go?"
fn question(address: IpAddr) -> Vec<u8> {
    let (family, octets) = match address {
        IpAddr::V4(address) => (AddressFamily::INET, address.octets().to_vec()),
        IpAddr::V6(address) => (AddressFamily::INET6, address.octets().to_vec()),
    };
    let attribute = 4 + octets.len();
    let length = HEADER + ROUTE + attribute;
    let mut message = Vec::with_capacity(length);
    message.extend(u32::try_from(length).expect("some 50 bytes").to_ne_bytes());
    message.extend(RTM_GETROUTE.to_ne_bytes());
    message.extend(NLM_F_REQUEST.to_ne_bytes());
    // Number of the question and the port of who asks: there is one question at a socket.
    message.extend([0; 8]);
    let family = u8::try_from(family.as_raw()).expect("2 or 10");
    let bits = u8::try_from(octets.len() * 8).expect("32 or 128");
    message.extend([family, bits]);
    message.extend([0; ROUTE - 2]);
    message.extend(u16::try_from(attribute).expect("8 or 20").to_ne_bytes());
    message.extend(RTA_DST.to_ne_bytes());
    message.extend(octets);
    message
}

fn read(answer: &[u8]) -> io::Result<bool> {
    let malformed =
        || io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer about a route is none");
    let (header, body) = answer.split_at_checked(HEADER).ok_or_else(malformed)?;
    match u16::from_ne_bytes([header[4], header[5]]) {
        RTM_NEWROUTE => {
            let kind = *body.get(ROUTE_KIND).ok_or_else(malformed)?;
            Ok(matches!(kind, RTN_LOCAL | RTN_ANYCAST))
        }
        NLMSG_ERROR => {
            let number = body.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)).ok_or_else(malformed)?;
            let error = io::Error::from_raw_os_error(number.saturating_neg());
            // There is no way to it, or a route that forbids it: it is not here, and dialling it says why.
            match Errno::from_io_error(&error) {
                Some(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::ACCESS) => Ok(false),
                _ => Err(error),
            }
        }
        _ => Err(malformed()),
    }
}

#[cfg(test)]
#[path = "own_address_tests.rs"]
mod tests;
