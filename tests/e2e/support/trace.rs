//! Traces of messages.

use std::time::Duration;

use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::{Value, json};

/// Trace of a message, once it satisfies the test.
pub(crate) async fn traced(gateway: &GatewayUnderTest, id: i64, is: impl Fn(&Value) -> bool) -> Value {
    let asking = async {
        let mut client = gateway.client().await.unwrap();
        loop {
            let found = client.request("trace", json!({"id": id.to_string()})).await.unwrap();
            if is(&found["events"][0]) {
                return found["events"][0].clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let found = tokio::time::timeout(DEADLINE, asking).await;
    found.unwrap_or_else(|_| panic!("message {id} is not traced as expected\n{}", gateway.log()))
}

pub(crate) fn numbered(mut update: Value, id: i64) -> Value {
    update["message"]["message_id"] = json!(id);
    update
}
