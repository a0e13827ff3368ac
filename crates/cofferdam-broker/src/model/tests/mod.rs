//! The routes as a whole, between a real client and a real server.

mod budget;
mod checks;
mod logins;
mod metering;
mod refusals;
mod rig;
mod trouble;
