//! The web chat in a real browser: sign-in, a streamed Markdown reply, abort, new conversations, errors, tools, and the same
//! page again after a reload.

use anyhow::Result;
use openclaw_testkit::browser::Browser;
use openclaw_testkit::model_server::{Captured, Gate, ModelServer, Reply, Step};
use openclaw_testkit::{DEADLINE, GatewayUnderTest, TOKEN};
use serde_json::{Value, json};

/// Puts a text into the field that `selector` finds, as a person would.
fn write(selector: &str, text: &str) -> String {
    let (selector, text) = (json!(selector), json!(text));
    format!(
        "(() => {{ const field = document.querySelector({selector}); \
         Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value').set.call(field, {text}); \
         field.dispatchEvent(new InputEvent('input', {{ bubbles: true }})); \
         return new Promise((done) => requestAnimationFrame(() => done(true))); }})()"
    )
}

/// Writes a message and sends it.
async fn say(page: &mut Browser, text: &str) -> Result<()> {
    page.eval(&write("textarea", text)).await?;
    page.eval("document.querySelector('button[type=submit]').click()").await.map(drop)
}

/// Presses Enter in the field for messages.
const ENTER: &str = "document.querySelector('textarea').dispatchEvent(\
                     new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }))";

const ONLINE: &str = "document.querySelector('.status.online')";

/// `kind: text` of every line.
const LINES: &str = "[...document.querySelectorAll('article')]\
                     .map((line) => `${line.className}: ${line.innerText.replaceAll('\\n', ' ')}`)";

/// Condition that no answer is arriving.
const QUIET: &str = "!document.querySelector('button.stop')";

async fn sign_in(page: &mut Browser, gateway: &GatewayUnderTest) -> Result<()> {
    page.open(&format!("http://127.0.0.1:{}/#token={TOKEN}", gateway.port()), DEADLINE).await?;
    page.wait_for(ONLINE, DEADLINE).await.map(drop)
}

/// The lines after a reload, once there are as many as before.
async fn reloaded(page: &mut Browser) -> Result<(Value, Value)> {
    let live = page.eval(LINES).await?;
    page.reload(DEADLINE).await?;
    let all =
        format!("document.querySelectorAll('article').length === {}", live.as_array().map_or(0, Vec::len));
    page.wait_for(&all, DEADLINE).await?;
    Ok((live, page.eval(LINES).await?))
}

/// A browser; without one the test is passed over.
macro_rules! browser {
    () => {
        match Browser::launch().await? {
            Some(page) => page,
            None => {
                println!("passed over: no Chromium on the PATH");
                return Ok(());
            }
        }
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_chats_stops_an_answer_and_finds_it_all_again_after_a_reload() -> Result<()> {
    let mut page = browser!();
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |request| answer(request, &held)).await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await?;

    sign_in(&mut page, &gateway).await?;
    assert_eq!(page.eval("location.hash").await?, "", "the token stays in the address bar");

    say(&mut page, "greet me").await?;
    page.wait_for("document.querySelector('article.assistant strong')?.textContent === 'Hello'", DEADLINE)
        .await?;
    page.wait_for(QUIET, DEADLINE).await?;
    assert_eq!(page.eval("document.querySelectorAll('article.assistant').length").await?, 1);
    assert_eq!(page.eval("window.pwned === undefined").await?, true, "a script of the model ran");

    say(&mut page, "talk for ever").await?;
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
async fn who_comes_without_a_token_is_asked_for_it_and_not_told_of_an_error() -> Result<()> {
    let mut page = browser!();
    let gateway = crate::gateway().start().await?;
    page.open(&format!("http://127.0.0.1:{}/", gateway.port()), DEADLINE).await?;
    page.wait_for("document.querySelector('form.sign-in input')", DEADLINE).await?;
    let asked = page.eval("document.querySelector('form.sign-in').innerText").await?;
    let asked = asked.as_str().unwrap_or_default();
    assert!(asked.contains("Gateway token or password") && asked.contains("openclaw dashboard"), "{asked}");
    assert!(!asked.contains("device identity"), "{asked}");
    assert_eq!(page.eval("document.querySelector('[role=alert]')").await?, Value::Null);
    // The field is there a moment before it has the focus.
    page.wait_for("document.activeElement.tagName === 'INPUT'", DEADLINE).await?;
    // The address that `openclaw dashboard` prints, opened in the same tab.
    page.eval(&format!("location.hash = 'token={TOKEN}'")).await?;
    page.wait_for(ONLINE, DEADLINE).await?;
    assert_eq!(page.eval("location.hash").await?, "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_is_called_wrong_and_the_right_one_signs_in() -> Result<()> {
    let mut page = browser!();
    let gateway = crate::gateway().start().await?;
    page.open(&format!("http://127.0.0.1:{}/#token=wrong", gateway.port()), DEADLINE).await?;
    page.wait_for("document.querySelector('form.sign-in [role=alert]')", DEADLINE).await?;
    let told = page.eval("document.querySelector('form.sign-in').innerText").await?;
    let told = told.as_str().unwrap_or_default();
    assert!(told.contains("This is not the token of this gateway."), "{told}");
    assert!(!told.contains("dashboard URL") && !told.contains("Control UI settings"), "{told}");
    assert_eq!(page.eval("sessionStorage.length").await?, 0, "a wrong token is kept");

    page.eval(&write("form.sign-in input", TOKEN)).await?;
    page.eval("document.querySelector('form.sign-in button').click()").await?;
    page.wait_for(ONLINE, DEADLINE).await?;
    page.reload(DEADLINE).await?;
    page.wait_for(ONLINE, DEADLINE).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_signs_in_as_a_token_does() -> Result<()> {
    let mut page = browser!();
    let auth = json!({"gateway": {"auth": {"mode": "password", "password": "open sesame", "token": null}}});
    let gateway = crate::gateway().config(auth).start().await?;
    page.open(&format!("http://127.0.0.1:{}/", gateway.port()), DEADLINE).await?;
    page.wait_for("document.querySelector('form.sign-in input')", DEADLINE).await?;
    page.eval(&write("form.sign-in input", "closed")).await?;
    page.eval("document.querySelector('form.sign-in button').click()").await?;
    page.wait_for("document.body.innerText.includes('This is not the password of this gateway.')", DEADLINE)
        .await?;
    page.eval(&write("form.sign-in input", "open sesame")).await?;
    page.eval("document.querySelector('form.sign-in button').click()").await?;
    page.wait_for(ONLINE, DEADLINE).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_conversation_shows_the_command_and_nothing_from_before_also_after_a_reload() -> Result<()> {
    let mut page = browser!();
    let model = ModelServer::answering(|request| match request.last_user_text().contains("Welcome them") {
        true => Reply::text("Welcome back."),
        false => Reply::text("Noted."),
    })
    .await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await?;
    sign_in(&mut page, &gateway).await?;
    say(&mut page, "remember the milk").await?;
    page.wait_for("document.body.innerText.includes('Noted.')", DEADLINE).await?;
    page.wait_for(QUIET, DEADLINE).await?;

    say(&mut page, "/new").await?;
    page.wait_for("document.body.innerText.includes('Welcome back.')", DEADLINE).await?;
    page.wait_for("!document.body.innerText.includes('remember the milk')", DEADLINE).await?;
    page.wait_for(QUIET, DEADLINE).await?;
    let (live, again) = reloaded(&mut page).await?;
    assert_eq!(live, json!(["user: /new", "assistant: Welcome back."]));
    assert_eq!(again, live);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_run_is_told_in_the_same_words_live_and_after_a_reload() -> Result<()> {
    let mut page = browser!();
    let model = ModelServer::answering(|_| Reply::openai_error(402, "insufficient_quota", "pay first")).await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await?;
    sign_in(&mut page, &gateway).await?;
    say(&mut page, "hello").await?;
    page.wait_for("document.querySelector('article.error[role=alert]')", DEADLINE).await?;
    let (live, again) = reloaded(&mut page).await?;
    let told = live[1].as_str().unwrap_or_default();
    assert!(told.starts_with("error: ⚠️ The API provider returned a billing error"), "{live}");
    assert_eq!(again, live);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_failed_with_every_model_names_them_once_live_and_after_a_reload() -> Result<()> {
    let mut page = browser!();
    let model =
        ModelServer::answering(|_| Reply::openai_error(401, "authentication_error", "the key is no good"))
            .await;
    let other = json!({"baseUrl": model.v1(), "apiKey": "other-key", "api": "openai-completions",
        "models": [{"id": "other-1", "name": "Other One", "contextWindow": 32000, "maxTokens": 4096}]});
    let fallback = json!({
        "agents": {"defaults": {"model": {"fallbacks": ["other/other-1"]}}},
        "models": {"providers": {"other": other}},
    });
    let gateway = crate::gateway().fake_model(&model.v1()).config(fallback).start().await?;
    sign_in(&mut page, &gateway).await?;
    say(&mut page, "hello").await?;
    page.wait_for("document.querySelector('article.error')", DEADLINE).await?;
    let (live, again) = reloaded(&mut page).await?;
    let told = live[1].as_str().unwrap_or_default();
    assert!(told.starts_with("error: All models failed (2): fake/fake-1: 401 the key is no good"), "{live}");
    assert_eq!(again, live);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_and_own_messages_differ_in_colour_and_all_text_can_be_read() -> Result<()> {
    let mut page = browser!();
    let model = ModelServer::queue([
        Reply::tool("c1", "read", &json!({"path": "none.txt"})),
        Reply::text("Hello `there`"),
        Reply::openai_error(401, "authentication_error", "the key is no good"),
    ])
    .await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await?;
    sign_in(&mut page, &gateway).await?;
    say(&mut page, "hello").await?;
    page.wait_for("document.body.innerText.includes('Hello')", DEADLINE).await?;
    page.wait_for(QUIET, DEADLINE).await?;
    say(&mut page, "and again").await?;
    page.wait_for("document.querySelector('article.error')", DEADLINE).await?;
    for (scheme, width) in [("light", 1000), ("light", 360), ("dark", 1000), ("dark", 360)] {
        page.show_as(scheme, width, 700).await?;
        let colours = page
            .eval(
                "['user', 'error'].map((kind) => getComputedStyle(document.querySelector(`article.${kind}`)))\
                 .map((style) => [style.color, style.backgroundColor])",
            )
            .await?;
        assert_ne!(colours[0][0], colours[1][0], "{scheme}");
        assert_ne!(colours[0][1], colours[1][1], "{scheme}");
        let faint = page.eval(FAINT).await?;
        assert_eq!(faint, json!([]), "{scheme}");
        let is_wider = "document.documentElement.scrollWidth > innerWidth";
        assert_eq!(page.eval(is_wider).await?, false, "{scheme} {width}: the page is wider than its window");
    }
    Ok(())
}

/// Script that finds every text whose contrast with what is behind it is below 4.5 to 1 (WCAG 2.1,
/// 1.4.3).
const FAINT: &str = "(() => {
    const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
    const light = (colour) => channels(colour).slice(0, 3)
        .map((value) => value / 255)
        .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
        .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (element) => {
        const colour = getComputedStyle(element).backgroundColor;
        return channels(colour)[3] === 0 ? behind(element.parentElement) : colour;
    };
    const contrast = (element) => {
        const [low, high] = [getComputedStyle(element).color, behind(element)].map(light).sort((a, b) => a - b);
        return (high + 0.05) / (low + 0.05);
    };
    return [...document.querySelectorAll('h1, .status, article, article *, button')]
        .filter((element) => element.innerText && contrast(element) < 4.5)
        .map((element) => `${element.className}: ${element.innerText} ${contrast(element)}`);
})()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_tool_does_is_shown_while_it_runs_and_how_it_ended_afterwards() -> Result<()> {
    let mut page = browser!();
    let model = ModelServer::queue([
        Reply::tool("c1", "exec", &json!({"command": "cat go"})),
        Reply::tool("c2", "read", &json!({"path": "none.txt"})),
        Reply::text("That was all."),
    ])
    .await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await?;
    let workspace = gateway.state_dir().join("workspace");
    std::fs::create_dir_all(&workspace)?;
    // The command waits for what the test writes.
    let pipe = workspace.join("go");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status()?.success());

    sign_in(&mut page, &gateway).await?;
    say(&mut page, "go").await?;
    page.wait_for("document.querySelector('article.tool .state.running')", DEADLINE).await?;
    assert_eq!(page.eval(LINES).await?, json!(["user: go", "tool: exec: cat go running…"]));
    // A page that is loaded in the middle hears of what comes.
    page.reload(DEADLINE).await?;
    page.wait_for("document.querySelector('article.tool')", DEADLINE).await?;
    tokio::task::spawn_blocking(move || std::fs::write(pipe, "now")).await??;
    page.wait_for("document.body.innerText.includes('That was all.')", DEADLINE).await?;
    page.wait_for(QUIET, DEADLINE).await?;
    let (live, again) = reloaded(&mut page).await?;
    let expect =
        ["user: go", "tool: exec: cat go done", "tool: read: none.txt failed", "assistant: That was all."];
    assert_eq!(live, json!(expect));
    assert_eq!(again, live);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn enter_without_a_connection_says_so_keeps_the_message_and_sends_it_once_there_is_one() -> Result<()> {
    let mut page = browser!();
    let mut gateway = crate::gateway().start().await?;
    sign_in(&mut page, &gateway).await?;
    gateway.keep_port();
    gateway.terminate().await?;
    page.wait_for("document.querySelector('.status.offline')", DEADLINE).await?;
    page.eval(&write("textarea", "are you there?")).await?;
    assert_eq!(page.eval("document.querySelector('[role=alert]')").await?, Value::Null);
    page.eval(ENTER).await?;
    page.wait_for(
        "document.querySelector('.composer [role=alert]')?.innerText.startsWith('Not sent')",
        DEADLINE,
    )
    .await?;
    assert_eq!(page.eval("document.querySelector('textarea').value").await?, "are you there?");
    assert_eq!(page.eval(LINES).await?, json!([]));

    // The gateway comes back: what waited is sent by itself, once.
    gateway.start().await?;
    page.wait_for("document.querySelector('article.user')?.innerText === 'are you there?'", 4 * DEADLINE)
        .await?;
    page.wait_for("document.querySelector('article.assistant')", DEADLINE).await?;
    page.wait_for(QUIET, DEADLINE).await?;
    assert_eq!(page.eval("document.querySelector('textarea').value").await?, "");
    assert_eq!(page.eval("document.querySelector('[role=alert]')").await?, Value::Null);
    let (live, again) = reloaded(&mut page).await?;
    assert_eq!(live.as_array().map_or(0, Vec::len), 2, "{live}");
    assert_eq!(again, live);
    Ok(())
}

/// The socket takes the message and the gateway dies before it answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_fate_is_unknown_is_sent_again_by_its_own_name_and_answered_once() -> Result<()> {
    let mut page = browser!();
    let model = ModelServer::answering(|_| Reply::text("Answered.")).await;
    let mut gateway = crate::gateway().fake_model(&model.v1()).start().await?;
    sign_in(&mut page, &gateway).await?;
    let mut client = gateway.client().await?;
    // The page hears nothing any more: its connection looks open, and then it is lost.
    page.eval(
        "(() => { const send = WebSocket.prototype.send; \
         WebSocket.prototype.send = function (text) { \
           send.call(this, text); \
           if (text.includes('chat.send') && !window.lost) { window.lost = text; this.onmessage = null; } }; })()",
    )
    .await?;
    say(&mut page, "only once").await?;
    page.wait_for("window.lost", DEADLINE).await?;
    client.event("chat", |payload| payload["state"] == "final").await?;
    gateway.keep_port();
    gateway.kill().await?;
    page.wait_for("document.querySelector('textarea').value === 'only once'", DEADLINE).await?;
    gateway.start().await?;
    page.wait_for("document.querySelector('textarea').value === ''", 4 * DEADLINE).await?;
    page.wait_for("document.querySelector('article.assistant')", DEADLINE).await?;
    page.wait_for(QUIET, DEADLINE).await?;
    assert_eq!(page.eval(LINES).await?, json!(["user: only once", "assistant: Answered."]));
    assert_eq!(model.requests().len(), 1);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tab_needs_no_token_and_a_device_that_is_gone_is_asked_for_it() -> Result<()> {
    let mut page = browser!();
    let mut gateway = crate::gateway().start().await?;
    sign_in(&mut page, &gateway).await?;
    assert_eq!(
        page.eval("sessionStorage.length").await?,
        0,
        "the shared secret is kept beside the device's token"
    );
    // A tab of its own has no session storage.
    page.eval("sessionStorage.clear()").await?;
    let address = format!("http://127.0.0.1:{}/", gateway.port());
    page.open("about:blank", DEADLINE).await?;
    page.open(&address, DEADLINE).await?;
    page.wait_for(ONLINE, DEADLINE).await?;

    gateway.keep_port();
    gateway.terminate().await?;
    std::fs::remove_file(gateway.state_dir().join("devices/paired.json"))?;
    gateway.start().await?;
    page.open("about:blank", DEADLINE).await?;
    page.open(&address, DEADLINE).await?;
    page.wait_for("document.querySelector('form.sign-in input')", 4 * DEADLINE).await?;
    assert_eq!(page.eval("document.querySelector('[role=alert]')").await?, Value::Null, "nothing was wrong");
    page.eval(&write("form.sign-in input", TOKEN)).await?;
    page.eval("document.querySelector('form.sign-in button').click()").await?;
    page.wait_for(ONLINE, DEADLINE).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_above_the_end_stays_where_they_are_and_one_at_the_end_follows_it() -> Result<()> {
    let mut page = browser!();
    let long = "a line of words\n\n".repeat(80);
    let model = ModelServer::answering(move |request| {
        let said = request.last_user_text();
        let word = ["one", "two", "three"].into_iter().find(|word| said.contains(word)).unwrap_or_default();
        Reply::text(&format!("{long}answer {word}"))
    })
    .await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await?;
    let mut other = gateway.client().await?;
    sign_in(&mut page, &gateway).await?;
    say(&mut page, "one").await?;
    page.wait_for("document.body.innerText.includes('answer one')", DEADLINE).await?;
    page.wait_for(QUIET, DEADLINE).await?;
    const FROM_END: &str = "(() => { const text = document.querySelector('.lines'); \
                            return text.scrollHeight - text.scrollTop - text.clientHeight; })()";
    page.wait_for(&format!("{FROM_END} < 48"), DEADLINE).await?;

    // Another person speaks while the reader is above the end, and then while they are there.
    page.eval("document.querySelector('.lines').scrollTop = 100").await?;
    page.wait_for("document.querySelector('.to-end')", DEADLINE).await?;
    crate::support::conversation::send(&mut other, "main", "two", "run-two").await;
    page.wait_for("document.body.innerText.includes('answer two')", DEADLINE).await?;
    assert_eq!(page.eval("document.querySelector('.lines').scrollTop").await?, 100);
    page.eval("document.querySelector('.to-end').click()").await?;
    page.wait_for("!document.querySelector('.to-end')", DEADLINE).await?;
    crate::support::conversation::send(&mut other, "main", "three", "run-three").await;
    page.wait_for("document.body.innerText.includes('answer three')", DEADLINE).await?;
    page.wait_for(&format!("{FROM_END} < 48"), DEADLINE).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_line_opens_to_what_the_tool_was_given_and_what_it_answered() -> Result<()> {
    let mut page = browser!();
    let model = ModelServer::queue([
        Reply::tool("c1", "exec", &json!({"command": "echo from-the-tool"})),
        Reply::text(
            "| name | meaning |\n|---|---|\n| incomprehensibilities | wordsthatofferthemselvesnoplace |",
        ),
    ])
    .await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await?;
    sign_in(&mut page, &gateway).await?;
    say(&mut page, "go").await?;
    page.wait_for("document.querySelector('article.assistant td')", DEADLINE).await?;
    page.wait_for(QUIET, DEADLINE).await?;
    for _ in ["live", "after a reload"] {
        page.eval("document.querySelector('article.tool summary').click()").await?;
        let told =
            "document.querySelector('article.tool details[open]')?.innerText.includes('from-the-tool\\n')";
        page.wait_for(told, DEADLINE).await?;
        page.wait_for(
            "document.querySelector('article.tool pre').innerText.includes('\"command\"')",
            DEADLINE,
        )
        .await?;
        page.reload(DEADLINE).await?;
        page.wait_for("document.querySelector('article.assistant td')", DEADLINE).await?;
    }
    // A word of a table stands on one line, however narrow the page is.
    page.show_as("light", 320, 700).await?;
    let lines = "[...document.querySelectorAll('td')].map((cell) => cell.getClientRects()[0].height < 60)";
    assert_eq!(page.eval(lines).await?, json!([true, true]));
    assert_eq!(page.eval("document.documentElement.scrollWidth > innerWidth").await?, false);
    Ok(())
}

/// A picture of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pasted_picture_goes_to_the_model_and_another_file_is_refused() -> Result<()> {
    let mut page = browser!();
    let model = ModelServer::answering(|_| Reply::text("I see.")).await;
    let sees = json!([{"id": "fake-1", "name": "Fake One", "reasoning": false, "input": ["text", "image"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 32000, "maxTokens": 4096}]);
    let sees = json!({"models": {"providers": {"fake": {"models": sees}}}});
    let gateway = crate::gateway().fake_model(&model.v1()).config(sees).start().await?;
    sign_in(&mut page, &gateway).await?;
    let paste = |name: &str, kind: &str| {
        format!(
            "(() => {{ const bytes = Uint8Array.from(atob('{PIXEL}'), (char) => char.charCodeAt(0)); \
             const clipboardData = new DataTransfer(); \
             clipboardData.items.add(new File([bytes], '{name}', {{ type: '{kind}' }})); \
             document.querySelector('textarea').dispatchEvent(new ClipboardEvent('paste', {{ clipboardData, bubbles: true, cancelable: true }})); }})()"
        )
    };
    page.eval(&paste("a.pdf", "application/pdf")).await?;
    page.wait_for(
        "document.querySelector('.composer [role=alert]')?.innerText.includes('a.pdf is no picture')",
        DEADLINE,
    )
    .await?;
    page.eval(&paste("a.svg", "image/svg+xml")).await?;
    page.wait_for(
        "document.querySelector('.composer [role=alert]')?.innerText.includes('Models do not take a.svg')",
        DEADLINE,
    )
    .await?;
    page.eval(&paste("a.png", "image/png")).await?;
    page.wait_for("document.querySelector('.pictures img')", DEADLINE).await?;
    page.eval(&write("textarea", "look at this")).await?;
    page.eval(ENTER).await?;
    page.wait_for("document.querySelector('article.user img')", DEADLINE).await?;
    page.wait_for("document.body.innerText.includes('I see.')", DEADLINE).await?;
    assert_eq!(page.eval("document.querySelector('.pictures')").await?, Value::Null);
    let asked = model.requests()[0].body.to_string();
    assert!(asked.contains("data:image/png;base64,"), "{asked}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_keeps_its_question_and_keys_do_what_people_expect() -> Result<()> {
    let mut page = browser!();
    let gate = Gate::new();
    let held = gate.clone();
    let model = ModelServer::answering(move |request| answer(request, &held)).await;
    let gateway = crate::gateway().fake_model(&model.v1()).start().await?;
    sign_in(&mut page, &gateway).await?;
    page.wait_for("document.activeElement.tagName === 'TEXTAREA'", DEADLINE).await?;

    say(&mut page, "/status").await?;
    page.wait_for("document.querySelector('article.assistant')", DEADLINE).await?;
    page.wait_for(QUIET, DEADLINE).await?;
    let (live, again) = reloaded(&mut page).await?;
    assert_eq!(live[0], "user: /status", "{live}");
    assert_eq!(again, live);
    page.wait_for(ONLINE, DEADLINE).await?;
    let is_timed = "[...document.querySelectorAll('article')].every((line) => /\\d/.test(line.dataset.time))";
    assert_eq!(page.eval(is_timed).await?, true);

    let height = "document.querySelector('textarea').clientHeight";
    let before = page.eval(height).await?.as_f64().unwrap_or_default();
    page.eval(&write("textarea", "one\ntwo\nthree\nfour\nfive\nsix")).await?;
    page.wait_for(&format!("{height} > {before}"), DEADLINE).await?;

    say(&mut page, "talk for ever").await?;
    page.wait_for("document.body.innerText.includes('once upon a time')", DEADLINE).await?;
    page.eval("window.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape' }))").await?;
    page.wait_for("document.body.innerText.includes('Stopped.')", DEADLINE).await?;
    gate.open();
    page.wait_for("document.querySelector('article.assistant .copy')", DEADLINE).await?;
    page.eval(
        "Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => { window.copied = text; } } })",
    )
    .await?;
    page.eval("[...document.querySelectorAll('article.assistant .copy')].at(-1).click()").await?;
    page.wait_for("window.copied === 'once upon a time'", DEADLINE).await?;
    page.wait_for("document.querySelector('.copied')?.ariaLabel === 'Copied'", DEADLINE).await?;
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
