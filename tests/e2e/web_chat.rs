//! The web chat in a real browser: sign-in by URL fragment, a streamed Markdown reply, abort, history after a reload.

use anyhow::Result;
use openclaw_testkit::browser::Browser;
use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, Step};
use openclaw_testkit::{DEADLINE, TOKEN};
use serde_json::json;

/// Types a message and sends it, as a person would.
fn say(text: &str) -> String {
    let text = json!(text);
    format!(
        "(() => {{ const box = document.querySelector('textarea'); \
         Object.getOwnPropertyDescriptor(HTMLTextAreaElement.prototype, 'value').set.call(box, {text}); \
         box.dispatchEvent(new InputEvent('input', {{ bubbles: true }})); \
         return new Promise((sent) => requestAnimationFrame(() => {{ document.querySelector('button[type=submit]').click(); sent(true); }})); }})()"
    )
}

const ONLINE: &str = "document.querySelector('.status.online')";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_chats_stops_an_answer_and_finds_it_all_again_after_a_reload() -> Result<()> {
    let Some(mut page) = Browser::launch().await? else {
        println!("passed over: no Chromium on the PATH");
        return Ok(());
    };
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |request| answer(request, &held)).await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await?;
    let url = format!("http://127.0.0.1:{}/", gateway.port());

    page.open(&format!("{url}#token={TOKEN}"), DEADLINE).await?;
    page.wait_for(ONLINE, DEADLINE).await?;
    assert_eq!(page.eval("location.hash").await?, "", "the token stays in the address bar");

    page.eval(&say("greet me")).await?;
    page.wait_for("document.querySelector('article.assistant strong')?.textContent === 'Hello'", DEADLINE)
        .await?;
    page.wait_for("!document.querySelector('button.stop')", DEADLINE).await?;
    assert_eq!(page.eval("document.querySelectorAll('article.assistant').length").await?, 1);
    assert_eq!(page.eval("window.pwned === undefined").await?, true, "a script of the model ran");

    page.eval(&say("talk for ever")).await?;
    page.wait_for("document.body.innerText.includes('once upon a time')", DEADLINE).await?;
    page.eval("document.querySelector('button.stop').click()").await?;
    page.wait_for("document.body.innerText.includes('Stopped.')", DEADLINE).await?;
    gate.open();

    page.reload(DEADLINE).await?;
    page.wait_for(ONLINE, DEADLINE).await?;
    page.wait_for("document.body.innerText.includes('talk for ever')", DEADLINE).await?;
    let text = page.eval("document.querySelector('.lines').innerText").await?;
    let text = text.as_str().unwrap_or_default();
    for line in ["greet me", "Hello", "once upon a time"] {
        assert!(text.contains(line), "{line:?} is missing in {text:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_asks_for_the_right_one() -> Result<()> {
    let Some(mut page) = Browser::launch().await? else {
        println!("passed over: no Chromium on the PATH");
        return Ok(());
    };
    let gateway = crate::gateway().start().await?;
    page.open(&format!("http://127.0.0.1:{}/#token=wrong", gateway.port()), DEADLINE).await?;
    page.wait_for(
        "document.querySelector('form.secret')?.innerText.includes('gateway token mismatch')",
        DEADLINE,
    )
    .await?;
    Ok(())
}

fn answer(request: &Captured, gate: &Gate) -> Reply {
    if request.last_user_text().contains("talk for ever") {
        return Reply::steps([
            Step::Text("once upon a time".to_owned()),
            Step::Wait(gate.clone()),
            Step::Text(" …".to_owned()),
        ]);
    }
    Reply::deltas(["**Hel", "lo** there", "<img src=x onerror='window.pwned=1'>"])
}
