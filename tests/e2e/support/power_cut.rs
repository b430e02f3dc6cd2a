//! A command that ends the gateway it runs in.

use openclaw_testkit::GatewayUnderTest;

/// Sends a signal to the gateway of this state directory.
pub(crate) fn suicide(gateway: &GatewayUnderTest, signal: &str) -> String {
    let lock = gateway.state_dir().join("gateway.lock");
    format!("kill {signal} $(grep -o '\"pid\":[0-9]*' '{}' | cut -d: -f2); sleep 60", lock.display())
}
