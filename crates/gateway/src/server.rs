//! The gateway's one port: listeners and HTTP.

pub(crate) mod accept;
pub(crate) mod front;
pub(crate) mod http;
pub(crate) mod listen;
mod not_there;
pub(crate) mod own_page;
mod tools_invoke;
mod watched;
pub(crate) mod web_ui;

pub use listen::ListenError;
