//! Nobody in this process asks the name service of the C library.
//!
//! In a static binary it would load the host's modules, of whatever version, into the process. Our own code resolves
//! names itself; what dependencies carry for those who do not is linked although it is never called. So the functions are
//! ours here: whoever calls them after all is told that there is no answer, and nothing is loaded.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![expect(unsafe_code, reason = "the functions of the C library are replaced by their names")]

use std::ffi::{c_char, c_int, c_void};

#[unsafe(no_mangle)]
extern "C" fn getaddrinfo(
    _node: *const c_char,
    _service: *const c_char,
    _hints: *const c_void,
    _found: *mut *mut c_void,
) -> c_int {
    libc::EAI_FAIL
}

/// There is never anything to free. It is here since the C library has it in one piece with the one above.
#[unsafe(no_mangle)]
extern "C" fn freeaddrinfo(_found: *mut c_void) {}

#[unsafe(no_mangle)]
extern "C" fn getpwuid_r(
    _user: libc::uid_t,
    _entry: *mut c_void,
    _buffer: *mut c_char,
    _length: usize,
    _found: *mut *mut c_void,
) -> c_int {
    libc::ENOENT
}

#[cfg(test)]
mod tests {
    use std::net::ToSocketAddrs;

    #[test]
    fn a_name_is_not_resolved_and_an_address_is_one() {
        assert!(("localhost", 80).to_socket_addrs().is_err());
        assert_eq!(("127.0.0.1", 80).to_socket_addrs().unwrap().count(), 1);
    }
}
