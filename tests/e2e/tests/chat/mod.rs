//! Agents that have a folder of their own, and what is said to them: the real CLIs with a scripted model.

mod files;
mod memory;
mod order;
mod refusals;
mod stage;
