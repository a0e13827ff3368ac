//! Random bytes for names that nobody can guess or meet by chance.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(bytes)
}
