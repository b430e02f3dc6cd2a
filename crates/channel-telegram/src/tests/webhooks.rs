use openclaw_testkit::ReservedPort;
use openclaw_testkit::telegram::{button, private_message};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::*;
use crate::{client, webhook};

async fn scene() -> (Scene, ReservedPort) {
    let reserved = ReservedPort::any().unwrap();
    let port = reserved.number().unwrap();
    let settings = format!(
        "webhookUrl: 'http://127.0.0.1:{port}/telegram-webhook', webhookSecret: 's3cret', webhookPort: {port},"
    );
    (Scene::with(&settings).await, reserved)
}

#[tokio::test]
async fn what_is_pushed_is_answered_when_the_inbox_has_it() {
    let (scene, _reserved) = scene().await;
    let inbox = Inbox::refusing(1);
    let running = scene.start(&inbox);
    scene.server.nth_answer("setWebhook", 1).await;
    let message = private_message(5, "pushed");
    assert_eq!(scene.server.push_to_webhook(message.clone()).await, 503, "the inbox has no room");
    assert_eq!(scene.server.push_to_webhook(message).await, 200);
    assert_eq!(inbox.texts(1).await, ["pushed"]);
    assert_eq!(scene.server.push_to_webhook(button(5, 42, "yes")).await, 200);
    scene.server.nth_call("answerCallbackQuery", 1).await;
    assert_eq!(running.until(|status| status.connected).await.mode, Some("webhook"));
    assert_eq!(running.stop().await, Exit::Stopped);
    let set = &scene.server.calls("setWebhook")[0].params;
    assert_eq!(
        (set["drop_pending_updates"].as_bool(), set["secret_token"].as_str()),
        (Some(false), Some("s3cret"))
    );
}

#[tokio::test]
async fn who_does_not_know_the_secret_is_refused() {
    let (scene, reserved) = scene().await;
    let port = reserved.number().unwrap();
    let inbox = Inbox::new();
    let running = scene.start(&inbox);
    scene.server.nth_answer("setWebhook", 1).await;
    let http = http();
    let url = |path: &str| format!("http://127.0.0.1:{port}{path}");
    let body = private_message(5, "forged").to_string();
    let status = async |request: reqwest::RequestBuilder| request.send().await.unwrap().status().as_u16();
    let hook = "/telegram-webhook";
    let secret = "X-Telegram-Bot-Api-Secret-Token";
    assert_eq!(status(http.post(url(hook)).body(body.clone())).await, 401);
    assert_eq!(status(http.post(url(hook)).header(secret, "s3cre").body(body.clone())).await, 401);
    assert_eq!(status(http.get(url(hook)).header(secret, "s3cret")).await, 404);
    assert_eq!(status(http.post(url("/other")).header(secret, "s3cret").body(body)).await, 404);
    let health = http.get(url("/healthz")).send().await.unwrap();
    assert_eq!(health.text().await.unwrap(), "ok");
    running.stop().await;
    assert!(inbox.taken.lock().is_empty());
}

fn http() -> reqwest::Client {
    let tls = openclaw_tls::client_config(openclaw_tls::HttpVersions::One).unwrap();
    reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls).build().unwrap()
}

/// Guesses are slowed down as on every surface (decision 26). The right secret is refused too, so
/// that nobody can tell by trying.
#[tokio::test]
async fn guesses_are_slowed_down() {
    let (scene, reserved) = scene().await;
    let port = reserved.number().unwrap();
    let running = scene.start(&Inbox::new());
    scene.server.nth_answer("setWebhook", 1).await;
    let http = http();
    let ask = async |secret: Option<&str>| {
        let request = http.post(format!("http://127.0.0.1:{port}/telegram-webhook")).body("{}");
        let request = secret
            .into_iter()
            .fold(request, |request, secret| request.header("X-Telegram-Bot-Api-Secret-Token", secret));
        let answer = request.send().await.unwrap();
        let wait = answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        (answer.status().as_u16(), wait)
    };
    for _ in 0..15 {
        assert_eq!(ask(None).await, (401, None), "nothing is guessed");
    }
    for _ in 0..10 {
        assert_eq!(ask(Some("guess")).await, (401, None));
    }
    for secret in [Some("guess"), Some("s3cret"), None] {
        assert_eq!(ask(secret).await, (429, Some("2".to_owned())), "{secret:?}");
    }
    running.stop().await;
}

/// Telegram brings what is refused again, and what is behind it waits: as with polling, one that can't be read is passed over.
#[tokio::test]
async fn what_can_not_be_read_is_passed_over() {
    let (scene, reserved) = scene().await;
    let port = reserved.number().unwrap();
    let inbox = Inbox::new();
    let running = scene.start(&inbox);
    scene.server.nth_answer("setWebhook", 1).await;
    let http = http();
    let push = async |body: Vec<u8>| {
        let request = http.post(format!("http://127.0.0.1:{port}/telegram-webhook")).body(body);
        request.header("X-Telegram-Bot-Api-Secret-Token", "s3cret").send().await.unwrap().status().as_u16()
    };
    for unreadable in [b"{".to_vec(), Vec::new(), vec![b' '; client::MAX_ANSWER + 1]] {
        assert_eq!(push(unreadable).await, 200);
        let told = |status: &AccountStatus| {
            status.last_error.as_ref().is_some_and(|error| error.contains("passed over"))
        };
        running.until(told).await;
        // The webhook works again.
        assert_eq!(scene.server.push_to_webhook(private_message(5, "hi")).await, 200);
        running.until(|status| status.last_error.is_none()).await;
    }
    // Of what is too long nothing is known: it is the same as nothing.
    let texts = inbox.texts(5).await;
    let words: Vec<&str> = texts.iter().map(|text| text.split(' ').next().unwrap()).collect();
    assert_eq!(words, ["Unreadable", "hi", "Unreadable", "hi", "hi"]);
    running.stop().await;
}

/// Connections that say nothing hold no place that Telegram needs.
#[tokio::test]
async fn silent_connections_make_room() {
    let (scene, reserved) = scene().await;
    let port = reserved.number().unwrap();
    let inbox = Inbox::new();
    let running = scene.start(&inbox);
    scene.server.nth_answer("setWebhook", 1).await;
    let mut silent = Vec::new();
    for _ in 0..3 * webhook::CONNECTIONS {
        let mut connection = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        // A closed connection may refuse the data.
        let _ = connection.write_all(b"POST /telegram-webhook HTTP/1.1\r\nHost: x").await;
        silent.push(connection);
    }
    let pushed = scene.server.push_to_webhook(private_message(5, "hi"));
    // Less than the ten seconds that a head may take.
    let pushed = tokio::time::timeout(std::time::Duration::from_secs(8), pushed).await;
    assert_eq!(pushed.expect("it waits for silent connections"), 200);
    assert_eq!(inbox.texts(1).await, ["hi"]);
    running.stop().await;
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_of() {
    let holder = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = holder.local_addr().unwrap().port();
    let settings = format!("webhookUrl: 'https://example.org/x', webhookSecret: 's', webhookPort: {port},");
    let scene = Scene::with(&settings).await;
    let exit = scene.start(&Inbox::new()).task.await.unwrap();
    assert!(matches!(&exit, Exit::Lost(why) if why.contains(&port.to_string())), "{exit:?}");
}
