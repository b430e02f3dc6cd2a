//! The gateway's one port: listeners, HTTP, and the clock that ticks beside them.

pub(crate) mod accept;
pub(crate) mod front;
pub(crate) mod http;
pub(crate) mod listen;
mod not_there;
pub(crate) mod own_page;
pub(crate) mod places;
pub(crate) mod ticker;
mod tools_invoke;
mod watched;
pub(crate) mod web_ui;

pub use listen::ListenError;
