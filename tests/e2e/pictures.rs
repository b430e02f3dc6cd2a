//! Pictures that a model is shown: what a file claims to be costs nothing before it is known to be harmless, and what is too large
//! for a provider is sent in a smaller form, wherever it comes from.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, WsClient};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{end, message, transcript_path, turn, well_formed};
use crate::support::pictures::black;

/// Pixels a side.
const SIDE: u32 = 24_000;

#[tokio::test]
async fn a_small_file_with_a_gigantic_picture_costs_no_memory() {
    let read = Reply::tool("c1", "read", &json!({"path": "big.png"}));
    let model = ModelServer::queue([read, Reply::text("done")]).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("big.png"), black(SIDE, SIDE)).unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "look", "run-1").await, "done");
    let told = model.requests()[1].messages().last().unwrap().to_string();
    assert!(told.contains("Image is too large to decode (24000x24000; at most 30 megapixels)"), "{told}");
    assert!(peak_memory(&gateway) < 256 * 1024, "{} kB", peak_memory(&gateway));
}

/// The client's picture of 3000 pixels, then one that is broken: what the model is shown is the same in each turn, also across a
/// restart, and the transcript has what the client sent.
#[tokio::test]
async fn a_large_attachment_is_sent_as_a_smaller_jpeg_and_stored_whole() {
    let model = ModelServer::answering(|_| Reply::text("seen")).await;
    let config = json!({"agents": {"defaults": {"model": "anthropic/claude-opus-4-6"}},
        "logging": {"level": "debug", "consoleLevel": "debug"},
        "models": {"providers": {"anthropic": {"baseUrl": model.url(), "models": []}}}});
    let setup = gateway().config(config).env("ANTHROPIC_API_KEY", "sk-ant-fake-key");
    let mut gateway = setup.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let wide = black(3000, 10);
    show(&mut client, "run-1", &[&wide]).await;
    assert_eq!(turn(&mut client, "main", "again", "run-2").await, "seen");
    gateway.logged("an image was made smaller").await.unwrap();
    let made = gateway.log().matches("an image was made smaller").count();
    assert_eq!(made, 1, "the next turn remembers it");
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let (small, broken) = (black(20, 10), &black(3000, 3000)[..60]);
    show(&mut client, "run-3", &[broken, &small]).await;

    let requests = model.requests();
    let first = images(&requests[0]);
    assert_eq!(first.len(), 1);
    assert_eq!((first[0].0.as_str(), jpeg_size(&first[0].1)), ("image/jpeg", (2000, 7)));
    assert_eq!(images(&requests[1]), first, "the next turn");
    let last = images(&requests[2]);
    assert_eq!((&last[..1], &last[1..]), (&first[..], &[("image/png".to_owned(), small.clone())][..]));
    let told = requests[2].messages().last().unwrap().to_string();
    assert!(told.contains("\"[session:history] omitted image payload: "), "{told}");

    let entries = well_formed(&transcript_path(&gateway, "main").await);
    let stored =
        entries.iter().flat_map(|entry| entry["message"]["content"].as_array().into_iter().flatten());
    let stored: Vec<Vec<u8>> =
        stored.filter(|block| block["type"] == "image").map(|block| bytes(&block["data"])).collect();
    assert_eq!(stored, [wide, broken.to_vec(), small]);
}

/// A client's picture in a format that models refuse is named to the model, also in the turns behind it, and stays in the transcript.
#[tokio::test]
async fn a_picture_that_models_do_not_take_is_told_of_in_words() {
    let model = ModelServer::answering(|_| Reply::text("seen")).await;
    let config = json!({"agents": {"defaults": {"model": "anthropic/claude-opus-4-6"}},
        "models": {"providers": {"anthropic": {"baseUrl": model.url(), "models": []}}}});
    let setup = gateway().config(config).env("ANTHROPIC_API_KEY", "sk-ant-fake-key");
    let gateway = setup.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let heic = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic";
    for (run, mime, file) in [
        ("svg", "image/svg+xml", &b"<svg xmlns='http://www.w3.org/2000/svg'/>"[..]),
        ("bmp", "image/bmp", b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0"),
        ("heic", "image/heic", heic),
    ] {
        show_as(&mut client, run, mime, &[file, &black(20, 10)]).await;
        let asked = model.requests().pop().unwrap();
        let told = asked.messages().last().unwrap().to_string();
        assert!(told.contains("models take PNG, JPEG, GIF and WebP, not image/"), "{mime} {told}");
        let shown = images(&asked);
        assert!(!shown.is_empty() && shown.iter().all(|(mime, _)| mime == "image/png"), "{mime} {told}");
    }
    let entries = well_formed(&transcript_path(&gateway, "main").await);
    let stored = entries.iter().map(Value::to_string).filter(|entry| entry.contains(&STANDARD.encode(heic)));
    assert_eq!(stored.count(), 1);
}

/// Attachments of clients never vanish without a word, and the log names those that are left out.
#[tokio::test]
async fn an_attachment_that_is_not_shown_is_told_of_in_words() {
    const UNSEEN: &str = "[an image is left out here: the model does not take it]";
    for (input, sees) in [(&["text", "image"][..], true), (&["text"][..], false)] {
        let (model, gateway) = crate::support::pictures::talk(input, json!({})).await;
        let mut client = gateway.client().await.unwrap();
        let mut params = message("main", "look", "run-1");
        params["attachments"] = json!([
            {"fileName": "report.pdf", "mimeType": "application/pdf", "content": STANDARD.encode(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")},
            {"fileName": "none.png", "mimeType": "image/png", "content": ""},
            {"mimeType": "image/png", "content": STANDARD.encode(black(20, 10))},
        ]);
        client.request("chat.send", params).await.unwrap();
        let end = end(&mut client, "run-1").await;
        assert_eq!(end["state"], "final", "{end}");
        let told = model.requests()[0].messages().last().unwrap().clone();
        let told: Vec<&str> = told["content"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["text"].as_str().unwrap_or("image"))
            .collect();
        let [said, told @ ..] = told.as_slice() else { panic!("{told:?}") };
        assert!(said.contains("look\n"), "{said}");
        let expect = [
            "[Attachment \"report.pdf\" is not shown to you: application/pdf is no image.]",
            "[Attachment \"none.png\" is not shown to you: it is empty.]",
            if sees { "image" } else { UNSEEN },
        ];
        assert_eq!(told, expect);
        gateway
            .logged("attachment report.pdf: detected non-image (application/pdf), dropping")
            .await
            .unwrap();
        gateway.logged("attachment none.png: empty, dropping").await.unwrap();
    }
}

/// A whole turn with pictures.
async fn show(client: &mut WsClient, run: &str, pictures: &[&[u8]]) {
    show_as(client, run, "image/png", pictures).await;
}

/// The same with pictures that are said to have this format.
async fn show_as(client: &mut WsClient, run: &str, mime: &str, pictures: &[&[u8]]) {
    let attachment =
        |picture: &&[u8]| json!({"type": "image", "mimeType": mime, "content": STANDARD.encode(picture)});
    let mut params = message("main", "look", run);
    params["attachments"] = pictures.iter().map(attachment).collect();
    client.request("chat.send", params).await.unwrap();
    let end = end(client, run).await;
    assert_eq!(end["state"], "final", "{end}");
}

/// Type and bytes of the pictures that a request shows, as Anthropic takes them.
fn images(request: &Captured) -> Vec<(String, Vec<u8>)> {
    let blocks =
        request.messages().iter().flat_map(|message| message["content"].as_array().into_iter().flatten());
    let sources = blocks.filter(|block| block["type"] == "image").map(|block| &block["source"]);
    sources
        .map(|source| (source["media_type"].as_str().unwrap().to_owned(), bytes(&source["data"])))
        .collect()
}

fn bytes(data: &Value) -> Vec<u8> {
    STANDARD.decode(data.as_str().unwrap()).unwrap()
}

/// Width and height of a baseline JPEG.
fn jpeg_size(jpeg: &[u8]) -> (u16, u16) {
    let at = jpeg.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
    let number = |at: usize| u16::from_be_bytes([jpeg[at], jpeg[at + 1]]);
    (number(at + 7), number(at + 5))
}

/// The most memory the gateway ever had, in kB.
fn peak_memory(gateway: &GatewayUnderTest) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid().unwrap())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
