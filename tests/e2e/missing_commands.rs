//! Chat commands of OpenClaw that this gateway does not have yet.

use openclaw_testkit::model_server::{ModelServer, Reply};

use crate::support::conversation::{history, turn};

#[tokio::test]
async fn a_command_that_is_not_there_yet_is_answered_by_the_gateway_and_other_words_by_the_model() {
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let commands = [("/TTS on", "tts"), ("/tts", "tts")];
    for (n, (text, name)) in commands.into_iter().enumerate() {
        let told = turn(&mut client, "main", text, &format!("c{n}")).await;
        let expect = format!("⚠️ /{name} is not there yet in this version. /commands lists what there is.");
        assert_eq!(told, expect, "{text}");
    }
    assert!(model.requests().is_empty(), "no model is called");
    let kept = history(&mut client, "main").await;
    assert_eq!(
        kept.iter().filter(|line| line.contains("is not there yet")).count(),
        commands.len(),
        "{kept:?}"
    );

    let words = ["/helpless people", "/foo", "/etc/passwd", "/think about it", "what does /think do?"];
    for (n, text) in words.into_iter().enumerate() {
        assert_eq!(turn(&mut client, "main", text, &format!("w{n}")).await, "from the model", "{text}");
        assert!(model.requests()[n].last_user_text().contains(text), "{text}");
    }
}
