//! Ways out, and kinds of socket that no agent needs.

use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use cofferdam_core::Wall;
use rustix::io::Errno;

use crate::attempt::{Attempt, Attempted, Expect};
use crate::errno;
use crate::kernel::filtered;
use crate::sys::{Arg, call};
use crate::target::Target;

const fn unreachable(name: &'static str, expect: Expect, run: fn(&Target) -> Attempted) -> Attempt {
    Attempt { name, wall: Wall::Network, expect, may_be_absent: None, run }
}

pub(crate) const ATTEMPTS: &[Attempt] = &[
    unreachable("other_interfaces", Expect::Measured, other_interfaces),
    unreachable("metadata_address", Expect::Errno(&[Errno::NETUNREACH]), metadata_address),
    unreachable("outside_address", Expect::Errno(&[Errno::NETUNREACH]), outside_address),
    // Nobody listens on the sandbox's own loopback.
    unreachable("host_loopback", Expect::Errno(&[Errno::CONNREFUSED]), host_loopback),
    // Abstract names belong to the network namespace. Where that is the host's, Landlock answers EPERM.
    unreachable(
        "host_abstract_socket",
        Expect::Errno(&[Errno::CONNREFUSED, Errno::PERM]),
        host_abstract_socket,
    ),
    filtered("raw_socket", raw_socket),
    filtered("packet_socket", packet_socket),
    Attempt {
        may_be_absent: Some("kernels can be built without sockets to the hypervisor"),
        ..filtered("hypervisor_socket", hypervisor_socket)
    },
    filtered("kernel_event_socket", kernel_event_socket),
    Attempt {
        may_be_absent: Some("kernels can be built without Multipath TCP, and namespaces can switch it off"),
        ..filtered("multipath_tcp", |_| internet_socket(libc::SOCK_STREAM, libc::IPPROTO_MPTCP))
    },
    Attempt {
        may_be_absent: Some("newer kernels have no UDP-Lite"),
        ..filtered("udp_lite", |_| internet_socket(libc::SOCK_DGRAM, libc::IPPROTO_UDPLITE))
    },
];

/// A socket that speaks something else than TCP and UDP.
fn internet_socket(kind: libc::c_int, protocol: libc::c_int) -> Attempted {
    let arguments = [libc::AF_INET, kind, protocol].map(|argument| Arg::Int(argument.into()));
    match call(libc::SYS_socket, arguments) {
        Err(errno @ (Errno::PROTONOSUPPORT | Errno::NOPROTOOPT)) => {
            Attempted::NotPossible(format!("this kernel does not speak it: {}", errno::name(errno)))
        }
        other => Attempted::by("socket", other),
    }
}

fn other_interfaces(_: &Target) -> Attempted {
    let table = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_else(|_| "unknown:".to_owned());
    let names: Vec<_> =
        table.lines().filter_map(|line| line.split_once(':')).map(|(n, _)| n.trim()).collect();
    Attempted::measured(names.iter().any(|name| *name != "lo"), format!("interfaces {names:?}"))
}

/// Connecting a datagram socket asks for a route and sends nothing.
fn route(to: SocketAddr) -> Attempted {
    let routed = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|socket| socket.connect(to));
    Attempted::by(&format!("route to {to}"), routed.map_err(|error| errno::of(&error)))
}

/// Clouds hand out the machine's credentials here.
fn metadata_address(_: &Target) -> Attempted {
    route((Ipv4Addr::new(169, 254, 169, 254), 80).into())
}

fn outside_address(target: &Target) -> Attempted {
    route(target.outside_address)
}

/// Services that trust whoever is on the same machine.
fn host_loopback(target: &Target) -> Attempted {
    let address = (Ipv4Addr::LOCALHOST, target.host_port).into();
    let connected = TcpStream::connect_timeout(&address, Duration::from_secs(1));
    Attempted::by(&format!("connection to {address}"), connected.map_err(|error| errno::of(&error)))
}

/// Such a socket has no path that a mount table could hide.
fn host_abstract_socket(target: &Target) -> Attempted {
    let connected = std::os::unix::net::SocketAddr::from_abstract_name(&target.host_abstract_socket)
        .and_then(|address| UnixStream::connect_addr(&address));
    Attempted::by("connection to an abstract socket", connected.map_err(|error| errno::of(&error)))
}

fn socket(family: libc::c_int, kind: libc::c_int, protocol: libc::c_int) -> Result<i64, Errno> {
    call(libc::SYS_socket, [Arg::Int(family.into()), Arg::Int(kind.into()), Arg::Int(protocol.into())])
}

/// Without the filter a protocol that does not exist is EINVAL for everybody.
fn raw_socket(_: &Target) -> Attempted {
    let opened = socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP);
    Attempted::by_filter("raw socket", opened, || socket(libc::AF_INET, libc::SOCK_RAW, -1))
}

/// Without the filter a socket type that does not exist is EINVAL for everybody.
fn packet_socket(_: &Target) -> Attempted {
    let opened = socket(libc::AF_PACKET, libc::SOCK_DGRAM, 0);
    Attempted::by_filter("packet socket", opened, || socket(libc::AF_PACKET, 15, 0))
}

fn hypervisor_socket(_: &Target) -> Attempted {
    match socket(libc::AF_VSOCK, libc::SOCK_STREAM, 0) {
        Err(Errno::AFNOSUPPORT) => Attempted::NotPossible("this kernel has no such sockets".to_owned()),
        other => Attempted::by("socket to the hypervisor", other),
    }
}

/// Device events of the whole machine, which an unfiltered kernel shows to everybody.
fn kernel_event_socket(_: &Target) -> Attempted {
    let opened = socket(libc::AF_NETLINK, libc::SOCK_DGRAM, libc::NETLINK_KOBJECT_UEVENT);
    Attempted::by("socket for kernel events", opened)
}
