//! What every store must do. Each test has one body and runs on every store there is.

mod fixture;

#[path = "conformance/attempts.rs"]
mod attempts;
#[path = "conformance/cancel.rs"]
mod cancel;
#[path = "conformance/consistency.rs"]
mod consistency;
#[path = "conformance/conversations.rs"]
mod conversations;
#[path = "conformance/egress.rs"]
mod egress;
#[path = "conformance/events.rs"]
mod events;
#[path = "conformance/leases.rs"]
mod leases;
#[path = "conformance/letters.rs"]
mod letters;
#[path = "conformance/messages.rs"]
mod messages;
#[path = "conformance/placement.rs"]
mod placement;
#[path = "conformance/queue.rs"]
mod queue;
#[path = "conformance/service.rs"]
mod service;
#[path = "conformance/slots.rs"]
mod slots;
#[path = "conformance/text.rs"]
mod text;
#[path = "conformance/wakes.rs"]
mod wakes;
