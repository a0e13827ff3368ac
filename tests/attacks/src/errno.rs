//! Names of error numbers.

use rustix::io::Errno;

const NAMES: &[(Errno, &str)] = &[
    (Errno::PERM, "EPERM"),
    (Errno::NOENT, "ENOENT"),
    (Errno::SRCH, "ESRCH"),
    (Errno::IO, "EIO"),
    (Errno::NXIO, "ENXIO"),
    (Errno::NOEXEC, "ENOEXEC"),
    (Errno::BADF, "EBADF"),
    (Errno::AGAIN, "EAGAIN"),
    (Errno::NOMEM, "ENOMEM"),
    (Errno::ACCESS, "EACCES"),
    (Errno::FAULT, "EFAULT"),
    (Errno::BUSY, "EBUSY"),
    (Errno::EXIST, "EEXIST"),
    (Errno::XDEV, "EXDEV"),
    (Errno::NOTDIR, "ENOTDIR"),
    (Errno::INVAL, "EINVAL"),
    (Errno::MFILE, "EMFILE"),
    (Errno::NOTTY, "ENOTTY"),
    (Errno::FBIG, "EFBIG"),
    (Errno::NOSPC, "ENOSPC"),
    (Errno::ROFS, "EROFS"),
    (Errno::NOSYS, "ENOSYS"),
    (Errno::OPNOTSUPP, "EOPNOTSUPP"),
    (Errno::AFNOSUPPORT, "EAFNOSUPPORT"),
    (Errno::NETUNREACH, "ENETUNREACH"),
    (Errno::HOSTUNREACH, "EHOSTUNREACH"),
    (Errno::CONNREFUSED, "ECONNREFUSED"),
    (Errno::TIMEDOUT, "ETIMEDOUT"),
];

/// The name of an error number; the number itself where it has none here.
pub(crate) fn name(errno: Errno) -> String {
    NAMES
        .iter()
        .find(|(known, _)| *known == errno)
        .map_or_else(|| format!("errno {}", errno.raw_os_error()), |(_, name)| (*name).to_owned())
}

/// The error number of an error of the standard library.
pub(crate) fn of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::INVAL)
}
