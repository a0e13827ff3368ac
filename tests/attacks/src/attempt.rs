//! What an attempt is, how it can end, and whether that is what the wall named for it does.

use cofferdam_core::Wall;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::errno;
use crate::target::Target;

/// One thing that a hostile agent tries.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// Its name, in reports and in the threat model.
    pub name: &'static str,
    /// The wall that must stop it.
    pub wall: Wall,
    /// How that wall answers.
    pub expect: Expect,
    /// Why a machine may have nothing to attack here; `None` where that would be a mistake of the test.
    pub may_be_absent: Option<&'static str>,
    /// The attempt itself.
    pub run: fn(&Target) -> Attempted,
}

/// How a wall answers.
#[derive(Debug, Clone, Copy)]
pub enum Expect {
    /// With one of these errors. Where the kernel refuses an unprivileged caller with the same error as
    /// the wall, the attempt goes on to a call that tells the two apart.
    Errno(&'static [Errno]),
    /// By the state of the process itself: a number that it reads, and not an error that it gets.
    Measured,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempted {
    /// The attack worked; what was gained.
    Succeeded(String),
    /// It was stopped: by an error, or (`None`) because what was measured is as it should be.
    Stopped(Option<Errno>, String),
    /// There was nothing to attack.
    NotPossible(String),
}

impl Attempted {
    /// The attack is one call, and its error is the wall's answer.
    pub(crate) fn by<T>(what: &str, result: Result<T, Errno>) -> Self {
        match result {
            Ok(_) => Self::Succeeded(what.to_owned()),
            Err(errno) => Self::Stopped(Some(errno), format!("{what}: {}", errno::name(errno))),
        }
    }

    /// The kernel refuses an unprivileged caller of `what` with EPERM, as the filter does. Then `proof`
    /// decides: the same call with arguments to which a kernel without a filter has another answer.
    pub(crate) fn by_filter<T, P>(
        what: &str,
        result: Result<T, Errno>,
        proof: impl FnOnce() -> Result<P, Errno>,
    ) -> Self {
        match result {
            Err(Errno::PERM) => match proof() {
                Err(Errno::PERM) => Self::Stopped(Some(Errno::PERM), format!("{what}: refused by a filter")),
                Err(other) => Self::Stopped(Some(other), format!("{what}: refused, but by no filter")),
                Ok(_) => Self::Stopped(None, format!("{what}: refused, but by no filter")),
            },
            other => Self::by(what, other),
        }
    }

    /// The attack is to find `what` to be so.
    pub(crate) fn measured(gained: bool, what: String) -> Self {
        if gained { Self::Succeeded(what) } else { Self::Stopped(None, what) }
    }
}

/// How a reported attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The attack worked.
    Succeeded,
    /// It was stopped.
    Stopped,
    /// There was nothing to attack.
    NotPossible,
    /// The process that made it was killed.
    Killed,
    /// It did not end in time.
    TimedOut,
}

/// One line of the program's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Which attempt.
    pub name: String,
    /// The wall named for it.
    pub wall: Wall,
    /// How it ended.
    pub result: Ending,
    /// The name of the error that stopped it.
    pub errno: Option<String>,
    /// For people.
    pub detail: String,
}

impl Report {
    pub(crate) fn new(attempt: &Attempt, result: Ending, errno: Option<Errno>, detail: String) -> Self {
        let errno = errno.map(errno::name);
        Self { name: attempt.name.to_owned(), wall: attempt.wall, result, errno, detail }
    }

    pub(crate) fn of(attempt: &Attempt, attempted: Attempted) -> Self {
        match attempted {
            Attempted::Succeeded(detail) => Self::new(attempt, Ending::Succeeded, None, detail),
            Attempted::Stopped(errno, detail) => Self::new(attempt, Ending::Stopped, errno, detail),
            Attempted::NotPossible(detail) => Self::new(attempt, Ending::NotPossible, None, detail),
        }
    }
}

impl Attempt {
    /// Whether the report shows that the named wall stopped the attempt.
    ///
    /// # Errors
    /// What went wrong, for people: it succeeded, or something else than the wall stopped it.
    pub fn judge(&self, report: &Report) -> Result<(), String> {
        let complain = |what: &str| Err(format!("{}: {what}: {}", self.name, report.detail));
        match (report.result, self.expect) {
            (Ending::Succeeded, _) => complain("the attack succeeded"),
            (Ending::Killed, _) => complain("the attacker was killed"),
            (Ending::TimedOut, _) => complain("no answer in time"),
            (Ending::NotPossible, _) if self.may_be_absent.is_some() => Ok(()),
            (Ending::NotPossible, _) => complain("there was nothing to attack"),
            (Ending::Stopped, Expect::Measured) if report.errno.is_none() => Ok(()),
            (Ending::Stopped, Expect::Errno(wanted))
                if wanted.iter().any(|errno| Some(errno::name(*errno)) == report.errno) =>
            {
                Ok(())
            }
            (Ending::Stopped, _) => {
                complain(&format!("stopped, but not as the wall `{}` does", self.wall.name()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTEMPT: Attempt = Attempt {
        name: "example",
        wall: Wall::Seccomp,
        expect: Expect::Errno(&[Errno::PERM]),
        may_be_absent: None,
        run: |_| Attempted::NotPossible(String::new()),
    };

    fn judge(attempt: &Attempt, attempted: Attempted) -> Result<(), String> {
        attempt.judge(&Report::of(attempt, attempted))
    }

    #[test]
    fn an_attempt_that_another_error_stopped_is_not_held() {
        assert!(judge(&ATTEMPT, Attempted::Stopped(Some(Errno::PERM), String::new())).is_ok());
        assert!(judge(&ATTEMPT, Attempted::Stopped(Some(Errno::INVAL), String::new())).is_err());
        assert!(judge(&ATTEMPT, Attempted::Stopped(None, String::new())).is_err());
        assert!(judge(&ATTEMPT, Attempted::Succeeded(String::new())).is_err());
    }

    #[test]
    fn nothing_to_attack_is_held_only_where_the_attempt_says_why() {
        assert!(judge(&ATTEMPT, Attempted::NotPossible(String::new())).is_err());
        let optional = Attempt { may_be_absent: Some("built without"), ..ATTEMPT };
        assert!(judge(&optional, Attempted::NotPossible(String::new())).is_ok());
    }

    #[test]
    fn a_refusal_counts_as_the_filter_s_only_with_its_proof() {
        let refused = || Err::<(), _>(Errno::PERM);
        let end = |proof: Result<(), Errno>| Attempted::by_filter("call", refused(), || proof);
        assert!(judge(&ATTEMPT, end(Err(Errno::PERM))).is_ok());
        assert!(judge(&ATTEMPT, end(Err(Errno::FAULT))).is_err());
        assert!(judge(&ATTEMPT, end(Ok(()))).is_err());
    }
}
