//! The two things of a native program that decide whether it runs here: its machine and its loader.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What the head of an ELF file says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Elf {
    machine: u16,
    /// Whether it has the word size and byte order that its machine number is read with.
    native_class: bool,
    /// The loader that it names; `None` for a static program.
    pub(super) loader: Option<PathBuf>,
}

/// Longest path of a loader that is read.
const MAX_LOADER_BYTES: u64 = 4096;
/// More program headers than any linker makes.
const MAX_HEADERS: u64 = 256;

const PT_INTERP: u32 = 3;
const X86_64: u16 = 62;
const AARCH64: u16 = 183;

impl Elf {
    /// Reads the head of a file; `None` if it is no ELF file.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        let mut head = [0; 64];
        match file.read_exact_at(&mut head, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        if &head[..4] != b"\x7fELF" {
            return Ok(None);
        }
        let native_class = head[4] == 2 && head[5] == 1;
        let machine = u16::from_le_bytes([head[18], head[19]]);
        let loader = if native_class { read_loader(&file, &head)? } else { None };
        Ok(Some(Self { machine, native_class, loader }))
    }

    /// Whether it is made for the machine that this binary is made for.
    pub(super) fn is_for_this_machine(&self) -> bool {
        let expected = match std::env::consts::ARCH {
            "x86_64" => X86_64,
            "aarch64" => AARCH64,
            _ => return false,
        };
        self.native_class && self.machine == expected
    }

    /// The machine that it is made for, in words.
    pub(super) fn machine(&self) -> String {
        match (self.machine, self.native_class) {
            (X86_64, true) => "x86_64".to_owned(),
            (AARCH64, true) => "aarch64".to_owned(),
            (3, _) => "32-bit x86".to_owned(),
            (40, _) => "32-bit ARM".to_owned(),
            (243, _) => "RISC-V".to_owned(),
            (number, _) => format!("another machine (ELF number {number})"),
        }
    }
}

fn read_loader(file: &File, head: &[u8; 64]) -> io::Result<Option<PathBuf>> {
    let table = u64_at(head, 32);
    let size = u64::from(u16::from_le_bytes([head[54], head[55]]));
    let count = u64::from(u16::from_le_bytes([head[56], head[57]])).min(MAX_HEADERS);
    for number in 0..count {
        let mut header = [0; 56];
        let Some(at) = number.checked_mul(size).and_then(|offset| table.checked_add(offset)) else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        file.read_exact_at(&mut header, at)?;
        if u32::from_le_bytes([header[0], header[1], header[2], header[3]]) == PT_INTERP {
            let length = u64_at(&header, 32).min(MAX_LOADER_BYTES);
            let mut name = vec![0; usize::try_from(length).unwrap_or_default()];
            file.read_exact_at(&mut name, u64_at(&header, 8))?;
            let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
            return Ok(Some(PathBuf::from(OsStr::from_bytes(&name[..end]))));
        }
    }
    Ok(None)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a range of eight bytes is eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_this_system_is_for_this_machine() {
        let elf = Elf::read(&std::env::current_exe().unwrap()).unwrap().unwrap();
        assert!(elf.is_for_this_machine(), "{elf:?}");
        let shell = Elf::read(Path::new("/bin/sh")).unwrap().unwrap();
        assert!(shell.loader.unwrap().exists());
    }

    #[test]
    fn a_cut_or_garbled_file_is_an_error_or_no_program_and_never_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        assert_eq!(Elf::read(&path).unwrap(), None);
        let mut head = std::fs::read("/bin/sh").unwrap()[..64].to_vec();
        head[32..40].fill(0xff);
        std::fs::write(&path, &head).unwrap();
        assert!(Elf::read(&path).is_err());
        head[18] = 183;
        head[56..58].fill(0);
        std::fs::write(&path, &head).unwrap();
        assert_eq!(Elf::read(&path).unwrap().unwrap().machine(), "aarch64");
    }
}
