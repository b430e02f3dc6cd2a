//! Pictures, and a model that sees them.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::config::merge;

/// A whole grey PNG, all of it black: a byte a pixel decoded, and next to nothing as a file.
pub(crate) fn black(width: u32, height: u32) -> Vec<u8> {
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend([8, 0, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in
        [(b"IHDR", header), (b"IDAT", zeros(u64::from(height) * u64::from(width + 1))), (b"IEND", Vec::new())]
    {
        let chunk = [name.as_slice(), &data].concat();
        png.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        png.extend(&chunk);
        png.extend(crc(&chunk).to_be_bytes());
    }
    png
}

/// A zlib stream of so many zeros: one zero, then copies of it, 258 at a time, in the fixed code of deflate.
fn zeros(count: u64) -> Vec<u8> {
    let copies = (count - 1) / 258;
    let mut bits = vec![true, true, false];
    let literal = |bits: &mut Vec<bool>| bits.extend([false, false, true, true, false, false, false, false]);
    literal(&mut bits);
    for _ in 0..copies {
        // Length 258 is 11000101, distance 1 is 00000.
        bits.extend([true, true, false, false, false, true, false, true]);
        bits.extend([false; 5]);
    }
    (0..(count - 1) % 258).for_each(|_| literal(&mut bits));
    bits.extend([false; 7]);
    let bytes = bits.chunks(8).map(|byte| byte.iter().rev().fold(0, |sum, bit| sum << 1 | u8::from(*bit)));
    let check = (u32::try_from(count % 65_521).unwrap() << 16 | 1).to_be_bytes();
    [0x78, 0x01].into_iter().chain(bytes).chain(check).collect()
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

/// A model that says "done", and a gateway whose workspace has a picture `a.png`.
pub(crate) async fn talk(input: &[&str], more: Value) -> (ModelServer, GatewayUnderTest) {
    let model = ModelServer::answering(|_| Reply::text("done")).await;
    let seeing =
        json!([{"id": "fake-1", "name": "Fake", "input": input, "contextWindow": 32000, "maxTokens": 4096}]);
    let mut config = json!({"models": {"providers": {"fake": {"models": seeing}}}});
    merge(&mut config, more);
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("a.png"), black(30, 20)).unwrap();
    (model, gateway)
}
