//! Names of error numbers, as seals and reports write them.

/// The name of an error number, such as `EPERM`; the number itself where it has none here.
pub(crate) fn name(errno: rustix::io::Errno) -> String {
    use rustix::io::Errno as E;
    let known = [
        (E::PERM, "EPERM"),
        (E::NOENT, "ENOENT"),
        (E::SRCH, "ESRCH"),
        (E::BADF, "EBADF"),
        (E::AGAIN, "EAGAIN"),
        (E::ACCESS, "EACCES"),
        (E::FAULT, "EFAULT"),
        (E::EXIST, "EEXIST"),
        (E::INVAL, "EINVAL"),
        (E::NOSYS, "ENOSYS"),
        (E::ROFS, "EROFS"),
        (E::AFNOSUPPORT, "EAFNOSUPPORT"),
        (E::OPNOTSUPP, "EOPNOTSUPP"),
        (E::ADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (E::NETUNREACH, "ENETUNREACH"),
        (E::HOSTUNREACH, "EHOSTUNREACH"),
    ];
    known
        .iter()
        .find(|(known, _)| *known == errno)
        .map_or_else(|| format!("errno {}", errno.raw_os_error()), |(_, name)| (*name).to_owned())
}
