//! Which file systems cannot hold the database.

/// The name of the network file system with this magic number (`statfs`'s `f_type`), if it is one.
///
/// SQLite's write-ahead log needs memory that all its users share and locks that hold; over a network
/// neither is there, and two machines would silently damage the record. FUSE is refused as well,
/// since sshfs and its like hide behind it.
pub(crate) fn network_file_system(magic: u32) -> Option<&'static str> {
    match magic {
        0x0000_6969 => Some("nfs"),
        0x0000_517b => Some("smb"),
        0xff53_4d42 => Some("cifs"),
        0xfe53_4d42 => Some("smb2"),
        0x0102_1997 => Some("9p"),
        0x5346_414f | 0x6b41_4653 => Some("afs"),
        0x00c3_6400 => Some("ceph"),
        0x7375_7245 => Some("coda"),
        0x6573_5546 => Some("fuse"),
        0x0bd0_0bd0 => Some("lustre"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_magic() {
        for (magic, name) in
            [(0x6969, "nfs"), (0xff53_4d42, "cifs"), (0x0102_1997, "9p"), (0x6573_5546, "fuse")]
        {
            assert_eq!(network_file_system(magic), Some(name));
        }
    }

    #[test]
    fn local_file_systems_are_accepted() {
        let ext4 = 0xef53;
        let tmpfs = 0x0102_1994;
        let btrfs = 0x9123_683e;
        let xfs = 0x5846_5342;
        let overlay = 0x794c_7630;
        for magic in [ext4, tmpfs, btrfs, xfs, overlay] {
            assert_eq!(network_file_system(magic), None, "{magic:x}");
        }
    }
}
