//! The socket of one client: from its upgrade through the handshake and its requests to its end.
//!
//! `driver` is its task, `requests` starts a handler for each frame, `frame_gate` holds it to what
//! it may send, and `batch` puts together what is written to it.

mod batch;
pub(crate) mod driver;
mod frame_gate;
mod frame_progress;
mod hello;
mod requests;
pub(crate) mod upgrade;
pub(crate) mod work_budget;
