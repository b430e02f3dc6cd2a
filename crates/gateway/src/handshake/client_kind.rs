//! Kinds of client that get special treatment (spec `gateway-protocol.md` §3.3, §3.8, §8.1).

use openclaw_protocol::params::connect::{ClientDescription, ClientId, ClientMode};

/// The Control UI: needs a device identity unless the config waives it.
pub(crate) fn is_control_ui(client: &ClientDescription) -> bool {
    client.id == ClientId::ControlUi
}

/// A page in a browser, the Control UI or a WebChat client: its origin is checked.
pub(crate) fn is_browser(client: &ClientDescription) -> bool {
    is_control_ui(client) || client.mode == ClientMode::Webchat || client.id == ClientId::WebchatUi
}

/// A command line: it doesn't show up in presence.
pub(crate) fn is_cli(client: &ClientDescription) -> bool {
    client.mode == ClientMode::Cli
}
