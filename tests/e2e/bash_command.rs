//! `/bash` and `! …`: shell commands that people write themselves (spec `messages.md` §5).

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::{TelegramServer, private_message};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::turn;
use crate::support::telegram::bot;
use crate::support::wait::until;

fn switched_on(more: Value) -> Value {
    let mut config = json!({
        "commands": {"bash": true},
        "tools": {"elevated": {"allowFrom": {"webchat": ["*"], "telegram": [5]}}},
    });
    crate::support::config::merge(&mut config, more);
    config
}

#[tokio::test]
async fn what_it_prints_and_how_it_ends_is_told() {
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let secret = json!({"messages": {"responsePrefix": ""}, "env": {"vars": {"SOME_API_KEY": "sk-very-secret-0123456789"}}});
    let gateway = gateway().fake_model(&model.v1()).config(switched_on(secret)).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "hello", "first").await, "from the model", "it makes the workspace");
    let workspace = gateway.state_dir().join("workspace");
    let here = format!("⚙️ bash: pwd\nExit: 0\n```txt\n{}\n```", workspace.canonicalize().unwrap().display());
    let rows = [
        ("! pwd", here.as_str()),
        ("/bash printf '%s' 'a  b'", "⚙️ bash: printf '%s' 'a  b'\nExit: 0\n```txt\na  b\n```"),
        ("/bash\nprintf a\nprintf b", "⚙️ bash: printf a\nprintf b\nExit: 0\n```txt\nab\n```"),
        ("!true", "⚙️ bash: true\nExit: 0\n(no output)"),
        ("! true", "⚙️ bash: true\nExit: 0\n(no output)"),
        ("! echo no >&2; exit 3", "⚙️ bash: echo no >&2; exit 3\nExit: 3\n```txt\nno\n```"),
        ("! kill -9 $$", "⚙️ bash: kill -9 $$\nExit: SIGKILL\n(no output)"),
        ("! cat", "⚙️ bash: cat\nExit: 0\n(no output)"),
        ("! echo '```'", "⚙️ bash: echo '```'\nExit: 0\n````txt\n```\n````"),
        ("!poll", "⚙️ No active bash job."),
        ("!stop", "⚙️ No active bash job."),
        ("!poll warm-sea", "⚙️ No bash session found for warm-sea."),
    ];
    for (n, (text, expect)) in rows.into_iter().enumerate() {
        assert_eq!(turn(&mut client, "main", text, &format!("c{n}")).await, expect, "{text}");
    }
    let help = turn(&mut client, "main", "/bash", "help").await;
    assert!(help.contains("!poll [id]"), "{help}");
    let long = turn(&mut client, "main", "! head -c 9000 /dev/zero | tr '\\0' x; echo END", "long").await;
    assert!(long.contains("(the last 4000 characters)") && long.contains("xEND\n```"), "{long}");
    assert!(long.len() < 4_300, "{}", long.len());
    let told = turn(&mut client, "main", "! echo $SOME_API_KEY sk-very-secret-0123456789", "secret").await;
    assert!(!told.contains("sk-very-secret"), "{told}");
    assert_eq!(model.requests().len(), 1, "no model is called");
}

#[tokio::test]
async fn one_that_takes_long_goes_on_and_is_the_only_one() {
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let config = switched_on(json!({"commands": {"bashForegroundMs": 0}}));
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let gate = gateway.state_dir().join("gate");
    let command =
        format!("mkfifo {gate} && echo begun && read line < {gate} && echo got $line", gate = gate.display());
    let begun = turn(&mut client, "main", &format!("! {command}"), "c0").await;
    let id = begun
        .strip_prefix("⚙️ bash started (session ")
        .and_then(|rest| rest.split_once("). Still running; use !poll / !stop (or /bash poll / /bash stop)."))
        .unwrap_or_else(|| panic!("{begun}"))
        .0
        .to_owned();
    // Another session's people see the same one.
    let busy = turn(&mut client, "agent:main:other", "! echo second", "c1").await;
    assert!(busy.starts_with(&format!("⚠️ A bash job is already running (session {id}).")), "{busy}");
    let mut polls = 0;
    let polled = loop {
        polls += 1;
        let polled = turn(&mut client, "main", "!poll", &format!("p{polls}")).await;
        assert!(polled.starts_with(&format!("⚙️ bash still running (session {id}, ")), "{polled}");
        if polled.contains("begun") {
            break polled;
        }
        assert!(polls < 1_000, "{polled}");
    };
    assert!(polled.ends_with("```txt\nbegun\n```"), "{polled}");
    tokio::task::spawn_blocking(move || std::fs::write(gate, "home\n")).await.unwrap().unwrap();
    let ended = loop {
        polls += 1;
        let polled = turn(&mut client, "main", &format!("/bash poll {id}"), &format!("p{polls}")).await;
        if polled.starts_with("⚙️ bash finished") {
            break polled;
        }
        assert!(polls < 1_000, "{polled}");
    };
    assert_eq!(ended, format!("⚙️ bash finished (session {id}).\nExit: 0\n```txt\nbegun\ngot home\n```"));

    // The agent hears of it; it did not see it before.
    let next = turn(&mut client, "main", "! sleep 1000", "c2").await;
    assert!(next.starts_with("⚙️ bash started"), "{next}");
    let stopped = turn(&mut client, "main", "!stop", "c3").await;
    assert!(
        stopped.starts_with("⚙️ bash stopped (session ") && stopped.ends_with("(no output)"),
        "{stopped}"
    );
    assert_eq!(turn(&mut client, "main", "!stop", "c4").await, "⚙️ No active bash job.");
    // An asker may see the end a moment before the agent is told.
    let mut asks = 0;
    until("the agent is told", async || {
        asks += 1;
        assert_eq!(turn(&mut client, "main", "hello", &format!("h{asks}")).await, "from the model");
        let asked = model.requests().pop().unwrap().messages().last().unwrap().to_string();
        (asked.contains("Exec completed (") && asked.contains("code 0) :: begun got home")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn only_whom_the_owner_lets_run_commands_may() {
    let server = TelegramServer::start().await;
    let model = ModelServer::answering(|_| Reply::text("from the model")).await;
    let section = json!({"dmPolicy": "allowlist", "allowFrom": [5, 6]});
    let _gateway = bot(&server, &model, section, switched_on(json!({}))).await;
    server.push(private_message(6, "! echo hi"));
    let refused = server.nth_call("sendMessage", 1).await.params["text"].as_str().unwrap().to_owned();
    assert!(refused.contains("elevated is not available right now"), "{refused}");
    assert!(refused.contains("tools.elevated.allowFrom.telegram"), "{refused}");
    // A stranger is not even told that.
    server.push(private_message(7, "! echo hi"));
    server.push(private_message(5, "! echo hi"));
    let said = server.nth_call("sendMessage", 2).await.params["text"].as_str().unwrap().to_owned();
    assert_eq!(said, "⚙️ bash: echo hi\nExit: 0\n\n<pre><code class=\"language-txt\">hi\n</code></pre>");
    assert!(model.requests().is_empty());
}
