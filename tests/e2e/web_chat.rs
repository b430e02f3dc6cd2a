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

/// No answer is arriving.
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

/// Every text whose contrast with what is behind it is below 4.5 to 1 (WCAG 2.1, 1.4.3).
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
async fn enter_without_a_connection_says_so_and_keeps_the_message() -> Result<()> {
    let mut page = browser!();
    let mut gateway = crate::gateway().start().await?;
    sign_in(&mut page, &gateway).await?;
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
