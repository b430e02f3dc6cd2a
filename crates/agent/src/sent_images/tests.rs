use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use openclaw_protocol::message::{AssistantMessage, ImageBlock};

use super::*;
use crate::picture::MAX_BYTES;
use crate::picture::samples::{claimed, encoded};

fn base64(mime: &str, data: &str) -> Block {
    Block::Image(ImageBlock { data: data.to_owned(), mime_type: mime.to_owned(), ..ImageBlock::default() })
}

fn image(mime: &str, bytes: &[u8]) -> Block {
    base64(mime, &STANDARD.encode(bytes))
}

fn wide(width: u32) -> Block {
    image("image/png", &encoded(width, 10, ImageFormat::Png))
}

fn said(content: Vec<Block>) -> Arc<Message> {
    let content = UserContent::Blocks(content);
    Arc::new(Message::User(UserMessage { content, timestamp: 7, ..UserMessage::default() }))
}

fn result(content: Vec<Block>) -> Arc<Message> {
    let details = Some(serde_json::json!({"path": "a.png"}));
    let result = ToolResultMessage {
        tool_call_id: "c1".to_owned(),
        tool_name: "camera".to_owned(),
        content,
        details,
        timestamp: 8,
        ..ToolResultMessage::default()
    };
    Arc::new(Message::ToolResult(result))
}

fn answer() -> Arc<Message> {
    Arc::new(Message::Assistant(AssistantMessage {
        content: vec![wide(3000)],
        ..AssistantMessage::default()
    }))
}

type Messages = Arc<Vec<Arc<Message>>>;

async fn view(images: &mut SentImages, messages: &Messages) -> Messages {
    images.view(messages, &CancellationToken::new()).await.unwrap()
}

async fn sent(content: Vec<Block>) -> Vec<String> {
    let messages = Arc::new(vec![said(content)]);
    let view = view(&mut SentImages::default(), &messages).await;
    blocks(&view[0]).iter().map(line).collect()
}

/// `image/jpeg 2000x7`, or a text; `as it is` with the length of what can't be read.
fn line(block: &Block) -> String {
    match block {
        Block::Text(text) => text.text.clone(),
        Block::Image(image) => {
            let bytes = STANDARD.decode(image.data.trim_ascii()).unwrap_or_default();
            match image::load_from_memory(&bytes) {
                Ok(picture) => format!("{} {}x{}", image.mime_type, picture.width(), picture.height()),
                Err(_) => format!("{} as it is, {}", image.mime_type, image.data.len()),
            }
        }
        other => format!("{other:?}"),
    }
}

/// Images are sent unchanged, smaller, or replaced by a reason; `…` stands for text of the decoder.
#[tokio::test]
async fn images_are_sent_as_they_are_smaller_or_with_a_reason_left_out() {
    let png = |width, height| encoded(width, height, ImageFormat::Png);
    let mut long = png(10, 10);
    long.resize(MAX_BYTES + 1, 0);
    let mut fills = png(10, 10);
    fills.resize(MAX_BYTES, 0);
    let in_lines = |bytes: &[u8]| {
        let text = STANDARD.encode(bytes);
        let lines = text.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned());
        base64("image/png", &lines.collect::<Vec<_>>().join("\r\n"))
    };
    let unpadded = |bytes: &[u8]| base64("image/png", STANDARD.encode(bytes).trim_end_matches('='));
    // A header that is longer than what is looked at first.
    let mut commented = b"\xff\xd8".to_vec();
    commented.extend([0xff, 0xfe, 0xff, 0xff].into_iter().chain(std::iter::repeat_n(b'x', 0xfffd)));
    commented.extend(&encoded(30, 20, ImageFormat::Jpeg)[2..]);
    let gigantic = "omitted image payload: Image is too large to decode (60000x60000; at most 30 megapixels)";
    let not_taken =
        |mime: &str| format!("omitted image payload: models take PNG, JPEG, GIF and WebP, not {mime}");
    let rows = [
        (image("image/png", &png(2000, 10)), "image/png 2000x10"),
        (image("image/png", &png(2001, 10)), "image/jpeg 2000x10"),
        (image("image/png", &png(10, 4000)), "image/jpeg 5x2000"),
        (image("image/gif", &encoded(3000, 6, ImageFormat::Gif)), "image/jpeg 2000x4"),
        (image("image/webp", &encoded(3000, 6, ImageFormat::WebP)), "image/jpeg 2000x4"),
        (image("image/jpeg", &encoded(3000, 6, ImageFormat::Jpeg)), "image/jpeg 2000x4"),
        (image("image/png", &fills), "image/png 10x10"),
        (image("image/png", &long), "image/jpeg 10x10"),
        (image("image/jpeg", &commented), "image/jpeg 30x20"),
        (in_lines(&png(3000, 60)), "image/jpeg 2000x40"),
        (unpadded(&png(3000, 60)), "image/jpeg 2000x40"),
        (image("image/png", &claimed(60_000, 60_000)), gigantic),
        (image("image/png", &claimed(3000, 3000)), "omitted image payload: …"),
        (image("image/png", &png(3000, 10)[..20]), "omitted image payload: …"),
        (image("image/png", b"just some words"), "omitted image payload: …"),
        (base64("image/png", "no base64!"), "omitted image payload: invalid base64: …"),
        // Models refuse these, with all that comes behind them.
        (image("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'/>"), &not_taken("image/svg+xml")),
        (image("image/bmp", b"BM just some words"), &not_taken("image/bmp")),
        (image("image/heic", &long[100..]), &not_taken("image/heic")),
        (image("image/x-png", &png(10, 10)), "image/x-png 10x10"),
        // The conversation is made fit for a model elsewhere.
        (base64("image/png", " "), "image/png as it is, 1"),
    ];
    for (block, expect) in rows {
        let name = line(&block);
        let sent = sent(vec![block]).await;
        let is_so =
            match expect.strip_prefix("omitted").map(|rest| format!("[session:history] omitted{rest}")) {
                Some(text) => match text.strip_suffix('…') {
                    Some(beginning) => sent[0].starts_with(beginning),
                    None => sent[0] == text,
                },
                None => sent[0] == expect,
            };
        assert!(is_so && sent.len() == 1, "{name}: {sent:?}, not {expect}");
    }
}

#[tokio::test]
async fn all_but_what_is_too_large_stays_where_it_is() {
    let content = || vec![Block::text("a"), wide(3000), Block::text("b"), wide(20), image("image/png", b"x")];
    let messages: Messages = Arc::new(vec![said(content()), answer(), result(content())]);
    let mut images = SentImages::default();
    let shown = view(&mut images, &messages).await;
    assert!(Arc::ptr_eq(&shown[1], &messages[1]), "what an answer shows is not sent");
    for (sent, was) in [(&shown[0], &messages[0]), (&shown[2], &messages[2])] {
        let lines: Vec<String> = blocks(sent).iter().map(line).collect();
        let (text, rest) = lines.split_last().unwrap();
        assert_eq!(rest, ["a", "image/jpeg 2000x7", "b", "image/png 20x10"]);
        assert!(text.starts_with("[session:history] omitted image payload: "), "{text}");
        assert_eq!(sent.timestamp(), was.timestamp());
        assert_eq!(blocks(was), content(), "the transcript has what it had");
    }
    let Message::ToolResult(result) = &*shown[2] else { panic!("{:?}", shown[2]) };
    assert_eq!((result.tool_call_id.as_str(), result.tool_name.as_str()), ("c1", "camera"));
    assert_eq!(result.details, None);
    assert!(images.memory() > 2 * size_of::<Message>());
}

#[tokio::test]
async fn nothing_is_copied_while_no_image_is_too_large() {
    let messages: Messages =
        Arc::new(vec![said(vec![Block::text("a"), wide(2000)]), answer(), result(vec![wide(20)])]);
    let mut images = SentImages::default();
    assert!(Arc::ptr_eq(&view(&mut images, &messages).await, &messages));
    assert!(Arc::ptr_eq(&view(&mut images, &messages).await, &messages));
}

/// Replacements are made once and reused, as the same object, as long as the message is in the
/// conversation.
#[tokio::test]
async fn nothing_is_made_twice() {
    let (first, second) = (said(vec![wide(3000)]), result(vec![wide(4000)]));
    let mut messages: Messages = Arc::new(vec![Arc::clone(&first), answer()]);
    let mut images = SentImages::default();
    let one = view(&mut images, &messages).await;
    Arc::make_mut(&mut messages).extend([Arc::clone(&second), answer()]);
    let two = view(&mut images, &messages).await;
    assert!(Arc::ptr_eq(&one[0], &two[0]));
    let memory = images.memory();
    // A summary takes the place of the beginning; the end comes back when the limit of a direct chat is lifted.
    let summary = said(vec![Block::text("The conversation history before this point was compacted")]);
    let tails: [Vec<Arc<Message>>; 3] = [
        vec![summary, Arc::clone(&second)],
        vec![Arc::clone(&second)],
        vec![Arc::clone(&second), said(vec![wide(5000)])],
    ];
    for tail in tails {
        let three = view(&mut images, &Arc::new(tail.clone())).await;
        let at = tail.iter().position(|message| Arc::ptr_eq(message, &second)).unwrap();
        assert!(Arc::ptr_eq(&three[at], &two[2]));
        assert_eq!(images.seen.len(), tail.len());
    }
    drop((one, two, messages));
    let none: Messages = Arc::new(vec![answer()]);
    assert!(Arc::ptr_eq(&view(&mut images, &none).await, &none));
    assert!(images.memory() < memory / 2, "what left the conversation is let go of");
    // Made anew where nothing was remembered, it is the same to the byte.
    let again = Arc::new(vec![first]);
    let (one, two) = (view(&mut images, &again).await, view(&mut SentImages::default(), &again).await);
    assert_eq!((Arc::ptr_eq(&one[0], &two[0]), &one[0]), (false, &two[0]));
}

#[tokio::test]
async fn a_stopped_run_does_not_wait_for_its_images() {
    let (begun, beginning) = tokio::sync::oneshot::channel();
    let (done, finish) = std::sync::mpsc::channel::<()>();
    let other = CancellationToken::new();
    let decoding = picture::in_turn(&other, move |_| {
        begun.send(()).unwrap();
        finish.recv().map_err(|error| PictureError::Unreadable(error.to_string()))
    });
    let messages = Arc::new(vec![said(vec![Block::text("a")]), said(vec![wide(3000)]), said(vec![wide(10)])]);
    let mut images = SentImages::default();
    let stopped = async {
        beginning.await.unwrap();
        let cancel = CancellationToken::new();
        let (stopped, ()) = tokio::join!(images.view(&messages, &cancel), async { cancel.cancel() });
        assert_eq!(stopped, None);
        done.send(()).unwrap();
    };
    let (decoded, ()) = tokio::join!(decoding, stopped);
    assert_eq!((decoded, images.seen.len()), (Ok(()), 1));
    // The next run goes on from there.
    let view = view(&mut images, &messages).await;
    assert_eq!(line(&blocks(&view[1])[0]), "image/jpeg 2000x7");
}
