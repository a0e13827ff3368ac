//! A value that one side changes and others wait for, whether they are async or not.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Watched<T> {
    value: Mutex<T>,
    /// Wakes threads.
    changed: Condvar,
    /// Wakes tasks.
    notify: Notify,
}

impl<T> Watched<T> {
    pub(crate) fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        read(&self.lock())
    }

    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        self.notify.notify_waiters();
        result
    }

    /// Waits until `holds`.
    pub(crate) async fn until(&self, holds: impl Fn(&T) -> bool) {
        loop {
            // Before the look, so that a change between the two is not missed.
            let changed = self.notify.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.read(&holds) {
                return;
            }
            changed.await;
        }
    }

    /// Waits, with the thread, until `holds`; whether it did in time.
    pub(crate) fn wait(&self, deadline: Duration, holds: impl Fn(&T) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), deadline, |value| !holds(value));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn lock(&self) -> MutexGuard<'_, T> {
        // A test that panicked while it read has not harmed the value.
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
