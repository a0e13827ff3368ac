//! The processes of a service: one that supervises and has the API, and its children that work.
//!
//! ```text
//! cofferdam serve            supervisor and API; service/NAME.lock, service/NAME.json
//! ├─ cofferdam work          the dispatcher: a node of its own name
//! ├─ cofferdam work …        `worker-N`, `tester-N`, `docser-N`, if an operator has started them
//! └─ cofferdam broker        the way out of the sandboxes of all of them
//! ```
//!
//! What is wanted of each child is in the record, and `supervisor` makes it so.
//!
//! A child's stdin is a pipe that its supervisor never writes to: when it ends, the supervisor is gone, however it died.
//! A signal at the parent's death would not do: Linux sends it when the parent's *thread* ends that started the child.

mod backoff;
mod child;
mod instance;
mod own_log;
mod own_logs;
mod requests;
mod supervisor;
mod tail;

pub(crate) use self::instance::{ChildState, Instance, Served, State};
pub(crate) use self::own_log::{LogOf, keep_small, log_path, open_log};
pub(crate) use self::own_logs::OwnLogs;
pub(crate) use self::requests::{supervisor_gone, until_asked_to_stop};
pub(crate) use self::supervisor::{Supervisor, SupervisorOptions};
pub(crate) use self::tail::{Tail, last_lines};
