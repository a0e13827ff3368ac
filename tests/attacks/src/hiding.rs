//! Holding more than one may where whoever counts does not look, or making that look take for ever. The program says nothing
//! of its own success: what counts is the run's outcome, and when it came.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use rustix::fs::MemfdFlags;

use crate::sys;

const MIB: usize = 1 << 20;
/// Smaller than any limit on the size of one file.
const FILE_MIB: u64 = 40;
/// As long as a name may be.
const LONG_NAME: usize = 255;
/// So deep that each line of `/proc/PID/maps` has some 30,000 characters.
const DEEP: usize = 120;

/// How a process hides what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hiding {
    /// Behind a name that is not UTF-8, with which a reader of `/proc/PID/stat` may have trouble.
    Name,
    /// Behind a first thread that has ended: `/proc/PID/fd` and `/proc/PID/maps` are empty then.
    Zombie,
    /// In a thread with a table of open files of its own, which `/proc/PID/fd` does not list.
    Table,
}

impl FromStr for Hiding {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "name" => Ok(Self::Name),
            "zombie" => Ok(Self::Zombie),
            "table" => Ok(Self::Table),
            _ => Err("hide by name, zombie or table"),
        }
    }
}

/// Holds that much of the disk in files without a name, for some seconds.
///
/// # Errors
/// If it cannot be written.
pub fn disk(hiding: Hiding, mib: u64, folder: &Path, seconds: u64) -> io::Result<()> {
    let folder = folder.to_owned();
    hold(hiding, seconds, move || {
        (0..mib.div_ceil(FILE_MIB))
            .map(|number| unnamed_file(&folder, number))
            .collect::<io::Result<Vec<_>>>()
    })
}

fn unnamed_file(folder: &Path, number: u64) -> io::Result<File> {
    let path = folder.join(format!(".attack-hidden-{number}"));
    let file = File::create(&path)?;
    fs::remove_file(&path)?;
    fill(file, FILE_MIB)
}

fn fill(mut file: File, mib: u64) -> io::Result<File> {
    let block = vec![0xa5; MIB];
    (0..mib).try_for_each(|_| file.write_all(&block))?;
    Ok(file)
}

/// Holds that much memory, for some seconds: in a memory file for a table of its own, else as ordinary memory.
///
/// # Errors
/// If there is not as much.
pub fn memory(hiding: Hiding, mib: u64, seconds: u64) -> io::Result<()> {
    hold(hiding, seconds, move || {
        let in_file =
            || -> io::Result<_> { fill(rustix::fs::memfd_create("x", MemfdFlags::CLOEXEC)?.into(), mib) };
        let file = if hiding == Hiding::Table { Some(in_file()?) } else { None };
        let own = if file.is_none() { mib } else { 0 };
        // Written to, because memory that is only asked for costs nothing.
        let pages: Vec<Vec<u8>> = (0..own).map(|_| std::hint::black_box(vec![0xa5; MIB])).collect();
        Ok((file, pages))
    })
}

/// Hides, takes something, and keeps it for some seconds.
fn hold<T>(
    hiding: Hiding,
    seconds: u64,
    take: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<()> {
    let keep = move || -> io::Result<()> {
        let held = take()?;
        thread::sleep(Duration::from_secs(seconds));
        drop(held);
        Ok(())
    };
    match hiding {
        Hiding::Name => {
            rustix::thread::set_name(c"\xff\xfe\xff")?;
            keep()
        }
        Hiding::Table => {
            let in_thread = move || sys::own_file_table().map_err(io::Error::from).and_then(|()| keep());
            thread::spawn(in_thread).join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
        }
        Hiding::Zombie => {
            thread::spawn(move || std::process::exit(i32::from(keep().is_err())));
            sys::exit_thread()
        }
    }
}

/// Starts processes each of which has so many mappings of a file at a deep path, and waits for the end: the text of all their
/// `/proc/PID/maps` together is gigabytes.
///
/// # Errors
/// What stopped it before all were there.
pub fn mappings(processes: u32, mappings: u32, folder: &Path) -> io::Result<()> {
    std::env::set_current_dir(folder)?;
    for _ in 0..DEEP {
        // One by one: the whole path is too long for one call.
        let name = "d".repeat(LONG_NAME);
        fs::create_dir(&name)?;
        std::env::set_current_dir(&name)?;
    }
    let file = fill(File::options().read(true).write(true).create_new(true).open("f")?, 1)?;
    sys::map_repeatedly(&file, mappings)?;
    for _ in 0..processes {
        sys::fork(|| sys::sleep_forever())?;
    }
    println!("ready");
    io::stdout().flush()?;
    sys::sleep_forever()
}
