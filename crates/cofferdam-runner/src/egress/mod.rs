//! The runner's side of the broker: what an attempt is granted, and who keeps the ledger.

mod access;
mod arrivals;
mod grant;
mod hand_over;
mod ledger;
mod process;
mod service;

pub(crate) use access::AccessError;
pub use access::BrokerAccess;
pub(crate) use grant::{Granted, Publishing, granted, publishing};

pub use ledger::StoreLedger;
pub use process::BrokerProcess;
pub use service::{BrokerService, Keeper, Retired, ServiceError};
