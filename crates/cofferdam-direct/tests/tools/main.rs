//! What the tools of a conversation make of hostile pages and projects. What is read in sealed processes is read here without
//! the walls: what comes of it is the same.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod pages;
mod project;
mod web;
