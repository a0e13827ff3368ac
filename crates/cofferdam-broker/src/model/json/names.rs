//! The names of the fields of objects that are open, to find one that occurs twice.

use std::hash::{BuildHasher, RandomState};

use super::fault::Fault;

/// In so small an object each name is compared with each, and a repeated one can be named.
const SMALL: usize = 32;
/// Names of open objects at a time. The attack: an object with millions of fields, whose names would take as much as
/// the request.
const MOST: usize = 1 << 16;

/// The names of open objects, by their hashes: two names with the same one are taken for the same, and nobody outside can
/// find two, because the hash has a key of its own in each request.
#[derive(Default)]
pub(super) struct Names {
    state: RandomState,
    hashes: Vec<u64>,
}

impl Names {
    /// Where the names of an object that begins now begin.
    pub(super) fn open(&self) -> usize {
        self.hashes.len()
    }

    /// Adds a name to the object that began there.
    pub(super) fn add(&mut self, first: usize, name: &[u8]) -> Result<(), Fault> {
        let hash = self.state.hash_one(name);
        let names = &self.hashes[first..];
        if names.len() <= SMALL && names.contains(&hash) {
            return Err(Fault::Twice { name: Some(String::from_utf8_lossy(name).into_owned()) });
        }
        if self.hashes.len() == MOST {
            return Err(Fault::Beyond("it has an object with more than 65536 fields"));
        }
        self.hashes.push(hash);
        Ok(())
    }

    /// Ends the object that began there.
    pub(super) fn close(&mut self, first: usize) -> Result<(), Fault> {
        let names = &mut self.hashes[first..];
        if names.len() > SMALL {
            names.sort_unstable();
            if names.windows(2).any(|pair| pair[0] == pair[1]) {
                return Err(Fault::Twice { name: None });
            }
        }
        self.hashes.truncate(first);
        Ok(())
    }
}
