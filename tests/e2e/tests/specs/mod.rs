//! Specs: phases in a sandbox, each with its gate. Tests that hold a line of the document's testing checklist are named after it.

mod agents;
mod approvals;
mod checklist;
mod command_line;
mod crashes;
mod gates;
mod stage;
