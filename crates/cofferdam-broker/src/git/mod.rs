//! The run's own repository, served with a token that stays outside. Only git's smart protocol for this one
//! repository goes through, each request built anew, and a push only to the one branch.

mod path;
pub(crate) mod push;
mod route;
#[cfg(test)]
mod test_host;

pub(crate) use route::Route;
