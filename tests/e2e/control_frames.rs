//! Pings and closes of a client, answered by the gateway's writer among other frames (RFC 6455 §5.5).

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::gateway;

/// A control frame of a client, its mask nothing.
fn control(opcode: u8, data: &[u8]) -> Vec<u8> {
    [&[0x80 | opcode, 0x80 | data.len() as u8, 0, 0, 0, 0], data].concat()
}

#[tokio::test]
async fn a_ping_and_a_close_are_answered_with_what_they_said() {
    const PING: u8 = 0x9;
    const PONG: u8 = 0xA;
    const CLOSE: u8 = 0x8;
    let closes: [&[u8]; 2] = [b"\x03\xe8enough", b""];
    for close in closes {
        let gateway = gateway().start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        client.send("health", json!({})).await.unwrap();
        let mut socket = client.into_stream();
        socket.write_all(&control(PING, b"still there?")).await.unwrap();
        let mut seen = Vec::new();
        let pong = [&[0x80 | PONG, 12][..], b"still there?"].concat();
        while !seen.windows(pong.len()).any(|window| window == pong) {
            assert!(socket.read_buf(&mut seen).await.unwrap() > 0, "no pong came");
        }
        socket.write_all(&control(CLOSE, close)).await.unwrap();
        socket.read_to_end(&mut seen).await.unwrap();
        let answer = [&[0x80 | CLOSE, close.len() as u8][..], close].concat();
        assert!(seen.ends_with(&answer), "{:?}", &seen[seen.len() - 20..]);
    }
}
