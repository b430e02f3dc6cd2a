//! Clients with other rights, abilities or devices than the usual one.

use openclaw_testkit::{GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::json;

pub(crate) async fn with_scopes(gateway: &GatewayUnderTest, scopes: &[&str]) -> WsClient {
    let login = Login::token(TOKEN).with("scopes", json!(scopes));
    WsClient::connect(gateway.port(), login).await.unwrap().0
}

pub(crate) async fn listener(port: u16) -> WsClient {
    let login = Login::token(TOKEN).with("caps", json!(["tool-events"]));
    WsClient::connect(port, login).await.unwrap().0
}

/// A client of one of ten devices: the list of who is here stays short.
pub(crate) fn tab(number: usize) -> Login {
    let device = format!("device-{}", number % 10);
    let client =
        json!({"id": "test", "version": "1.0.0", "platform": "linux", "mode": "test", "instanceId": device});
    Login::token(TOKEN).with("client", client)
}
