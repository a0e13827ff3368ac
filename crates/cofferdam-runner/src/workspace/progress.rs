//! How preparing tells what it does, and is told to stop.

use super::Error;

/// Whoever waits for a workspace.
pub struct Progress<'a> {
    tell: &'a mut dyn FnMut(String),
    is_cancelled: &'a dyn Fn() -> bool,
}

impl<'a> Progress<'a> {
    /// Tells `tell` what is going on, and stops when `is_cancelled` says so.
    pub fn new(tell: &'a mut dyn FnMut(String), is_cancelled: &'a dyn Fn() -> bool) -> Self {
        Self { tell, is_cancelled }
    }

    pub(super) fn tell(&mut self, text: String) {
        (self.tell)(text);
    }

    /// Stops here if nobody waits any more.
    pub(super) fn check(&self) -> Result<(), Error> {
        if (self.is_cancelled)() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
