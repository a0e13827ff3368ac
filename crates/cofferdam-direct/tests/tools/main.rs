//! What the tools of a conversation make of hostile pages and projects. What is read in sealed processes is read here without
//! the walls: what comes of it is the same.

mod pages;
mod project;
mod web;
