//! The routes as a whole, between a real client and a real server.

mod agreement;
mod budget;
mod checks;
mod logins;
mod memory;
mod metering;
mod oracle;
mod refusals;
mod reservations;
mod rig;
mod trouble;
mod vendor_tools;
