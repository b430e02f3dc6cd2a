//! Pictures that a model reads: what a file claims to be costs nothing before it is known to be harmless.

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::json;

use crate::conversation::turn;
use crate::gateway;

/// Pixels a side.
const SIDE: u32 = 24_000;

#[tokio::test]
async fn a_small_file_with_a_gigantic_picture_costs_no_memory() {
    let read = Reply::tool("c1", "read", &json!({"path": "big.png"}));
    let model = ModelServer::queue([read, Reply::text("done")]).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("big.png"), black_square()).unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "look", "run-1").await, "done");
    let told = model.requests()[1].messages().last().unwrap().to_string();
    assert!(told.contains("Image is too large to decode (24000x24000; at most 30 megapixels)"), "{told}");
    assert!(peak_memory(&gateway) < 256 * 1024, "{} kB", peak_memory(&gateway));
}

/// The most memory the gateway ever had, in kB.
fn peak_memory(gateway: &GatewayUnderTest) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid().unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// A whole grey PNG, all of it black: 576 MB decoded.
fn black_square() -> Vec<u8> {
    let mut header = [SIDE.to_be_bytes(), SIDE.to_be_bytes()].concat();
    header.extend([8, 0, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in
        [(b"IHDR", header), (b"IDAT", zeros(u64::from(SIDE) * u64::from(SIDE + 1))), (b"IEND", Vec::new())]
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
