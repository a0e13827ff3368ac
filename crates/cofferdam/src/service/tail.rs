//! The end of a log, and what is added to it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// No more of a log is looked at for its last lines.
const MOST: u64 = 1 << 20;

/// The last lines of a file; none if there is no file.
pub(crate) fn last_lines(path: &Path, count: usize) -> io::Result<String> {
    Ok(Tail::open(path, count)?.1)
}

/// A log that is followed.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    file: Option<File>,
}

impl Tail {
    /// A log from here on, and its last lines until now.
    pub(crate) fn open(path: &Path, count: usize) -> io::Result<(Self, String)> {
        let mut tail = Self { path: path.to_owned(), file: open(path)? };
        let mut text = String::new();
        if let Some(file) = &mut tail.file {
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(MOST)))?;
            text = read(file)?;
        }
        let lines: Vec<&str> = text.lines().collect();
        let last =
            lines[lines.len().saturating_sub(count)..].iter().map(|line| format!("{line}\n")).collect();
        Ok((tail, last))
    }

    /// What was added since. A file that was put aside is read to its end, and then the new one.
    pub(crate) fn more(&mut self) -> io::Result<String> {
        let mut text = match &mut self.file {
            Some(file) => read(file)?,
            None => String::new(),
        };
        let is_same = |now: &File, before: &Option<File>| -> io::Result<bool> {
            let Some(before) = before else { return Ok(false) };
            Ok(now.metadata()?.ino() == before.metadata()?.ino())
        };
        if let Some(mut now) = open(&self.path)?
            && !is_same(&now, &self.file)?
        {
            text.push_str(&read(&mut now)?);
            self.file = Some(now);
        }
        Ok(text)
    }
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn read(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_and_what_follows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.log");
        assert_eq!(last_lines(&path, 5).unwrap(), "");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let (mut tail, last) = Tail::open(&path, 2).unwrap();
        assert_eq!(last, "two\nthree\n");
        assert_eq!(tail.more().unwrap(), "");
        let add =
            |text: &str| io::Write::write_all(&mut crate::service::open_log(&path).unwrap(), text.as_bytes());
        add("four\n").unwrap();
        assert_eq!(tail.more().unwrap(), "four\n");
        add("five\n").unwrap();
        std::fs::rename(&path, folder.path().join("x.log.1")).unwrap();
        add("six\n").unwrap();
        assert_eq!(tail.more().unwrap(), "five\nsix\n", "nothing is missed when it is put aside");
    }
}
