//! Skills in the runs of agents: what the prompt says of them, when that changes, what commands are given for them.

use std::time::{Duration, Instant};

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::clock::now_ms;
use crate::support::conversation::{sessions_dir, turn};
use crate::support::skills::{model, own, write};

/// Longer than any edit takes to be noticed.
const PATIENCE: Duration = openclaw_testkit::DEADLINE;

/// The names that a request's prompt lists.
fn listed(request: &Captured) -> Vec<String> {
    let prompt = request.messages()[0]["content"].as_str().unwrap().to_owned();
    let names = prompt.split("<name>").skip(1);
    names.map(|rest| rest.split_once("</name>").unwrap().0.to_owned()).collect()
}

fn last_listed(model: &ModelServer) -> Vec<String> {
    listed(model.requests().last().unwrap())
}

/// The row of a session as it is on disk once a run has written it.
async fn row(gateway: &GatewayUnderTest, key: &str) -> Value {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(sessions_dir(gateway).join("sessions.json")).unwrap_or_default();
        let rows: Value = serde_json::from_str(&text).unwrap_or_default();
        if rows[key]["systemPromptReport"].is_object() {
            return rows[key].clone();
        }
        assert!(begun.elapsed() < PATIENCE, "{key} is never written: {rows}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_prompt_lists_what_can_be_used_and_the_row_remembers_it() {
    let model = model().await;
    let mut gateway = gateway()
        .fake_model(&model.v1())
        .config(json!({"skills": {"entries": {"off": {"enabled": false}}}}))
        .prepare()
        .unwrap();
    let managed = gateway.state_dir().join("skills");
    write(&managed, "shared", "");
    write(&managed, "off", "");
    write(&managed, "needy", "metadata: {\"openclaw\":{\"requires\":{\"bins\":[\"no-such-program\"]}}}");
    write(&own(&gateway), "shared", "");
    write(
        &own(&gateway),
        "shell",
        "metadata: {\"clawdbot\":{\"requires\":{\"bins\":[\"sh\"]},\"primaryEnv\":\"K\"}}",
    );
    write(&own(&gateway), "hidden", "disable-model-invocation: true");
    std::fs::create_dir_all(own(&gateway).join("broken")).unwrap();
    std::fs::write(own(&gateway).join("broken/SKILL.md"), "no settings").unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-1").await;

    let prompt = model.requests()[0].messages()[0]["content"].as_str().unwrap().to_owned();
    let section = prompt.split("## Skills (mandatory)\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let place = own(&gateway).display().to_string();
    let block = |name: &str| {
        format!(
            "  <skill>\n    <name>{name}</name>\n    <description>About {name}</description>\n    \
             <location>{place}/{name}/SKILL.md</location>\n  </skill>\n"
        )
    };
    let list = format!("<available_skills>\n{}{}</available_skills>", block("shared"), block("shell"));
    assert!(section.contains(&list), "{section}");

    let row = row(&gateway, "agent:main:main").await;
    let report = &row["systemPromptReport"]["skills"];
    let named: Vec<&str> =
        report["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(named, ["shared", "shell"], "{report}");
    assert_eq!(report["entries"][1]["blockChars"], block("shell").trim().len());
    let kept = row["skillsSnapshot"].as_object().unwrap();
    assert_eq!(kept.keys().collect::<Vec<_>>(), ["promptHash", "skills", "version"], "{row}");
    let names = json!([{"name": "shared"}, {"name": "shell", "primaryEnv": "K"}, {"name": "hidden"}]);
    // In the order of the directories; `shared` has the place of the one it overrides.
    assert_eq!(sorted(&kept["skills"]), sorted(&names));
    gateway.logged("broken/SKILL.md has no description").await.unwrap();
}

fn sorted(skills: &Value) -> Vec<String> {
    let mut all: Vec<String> = skills.as_array().unwrap().iter().map(Value::to_string).collect();
    all.sort();
    all
}

#[tokio::test]
async fn an_edit_of_a_skill_is_in_the_prompt_soon_after_and_until_then_it_is_the_same() {
    let model = model().await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let mut turns = 0;
    let mut until = async |expect: &[&str]| {
        let begun = Instant::now();
        loop {
            turns += 1;
            turn(&mut client, "main", "hello", &format!("run-{turns}")).await;
            if last_listed(&model) == expect {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{:?} instead of {expect:?}", last_listed(&model));
        }
    };
    until(&[]).await;
    let prompt = |request: &Captured| request.messages()[0].clone();
    assert!(!prompt(&model.requests()[0]).to_string().contains("## Skills"), "no section without skills");
    write(&own(&gateway), "one", "");
    until(&["one"]).await;
    write(&own(&gateway), "two", "");
    write(&gateway.state_dir().join("skills"), "zero", "");
    until(&["zero", "one", "two"]).await;
    write(&own(&gateway), "one", "disable-model-invocation: true");
    until(&["zero", "two"]).await;
    until(&["zero", "two"]).await;
    let requests = model.requests();
    let [.., before, last] = requests.as_slice() else { panic!("too few requests") };
    assert_eq!(prompt(before), prompt(last), "the prompt is the same byte for byte");
    std::fs::remove_dir_all(own(&gateway)).unwrap();
    until(&["zero"]).await;
    std::fs::remove_dir_all(gateway.state_dir().join("skills")).unwrap();
    until(&[]).await;
}

#[tokio::test]
async fn other_settings_and_a_restart_are_noticed_by_old_sessions() {
    let model = model().await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    write(&own(&gateway), "one", "");
    write(&own(&gateway), "two", "");
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-1").await;
    assert_eq!(last_listed(&model), ["one", "two"]);
    let params = json!({"skillKey": "one", "enabled": false});
    client.request("skills.update", params).await.unwrap();
    turn(&mut client, "main", "hello", "run-2").await;
    assert_eq!(last_listed(&model), ["two"], "taken with the next turn");
    gateway.terminate().await.unwrap();
    write(&own(&gateway), "three", "");
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-3").await;
    assert_eq!(last_listed(&model), ["three", "two"]);
}

#[tokio::test]
async fn a_row_of_openclaw_2_9_is_gone_on_with() {
    let model = model().await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    write(&own(&gateway), "one", "");
    let snapshot = json!({"prompt": "<available_skills>\n  <skill>\n    <name>old</name>\n  </skill>\n</available_skills>",
        "skills": [{"name": "old"}], "resolvedSkills": [{"name": "old", "filePath": "/x"}], "version": 0});
    let dir = sessions_dir(&gateway);
    std::fs::create_dir_all(&dir).unwrap();
    let now = now_ms();
    let rows = json!({"agent:main:main": {"sessionId": "s-1", "updatedAt": now, "skillsSnapshot": snapshot}});
    std::fs::write(dir.join("sessions.json"), rows.to_string()).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-1").await;
    assert_eq!(last_listed(&model), ["one"]);
    let kept = &row(&gateway, "agent:main:main").await["skillsSnapshot"];
    assert_eq!(kept["skills"], json!([{"name": "one"}]), "{kept}");
}

#[tokio::test]
async fn commands_get_the_variables_of_their_agents_skills_and_tools_do_not_print_the_keys() {
    const KEY: &str = "key-of-the-demo-skill-1";
    let show = "echo \"[$DEMO_KEY|${#DEMO_KEY}|$DEMO_PLACE|$OPENAI_API_KEY|$SET_BEFORE]\"";
    let model = ModelServer::answering(move |request| {
        if request.ends_with_tool_result() {
            Reply::text("done")
        } else {
            Reply::tool("c1", "exec", &json!({"command": show}))
        }
    })
    .await;
    let entries = json!({
        "demo": {"apiKey": KEY, "env": {"DEMO_PLACE": "here", "SET_BEFORE": "by the skill"}},
        "speech": {"apiKey": "openai-for-commands"},
        "off": {"enabled": false, "env": {"DEMO_PLACE": "off"}},
    });
    let list = json!([{"id": "main"}, {"id": "plain", "skills": []}]);
    let mut gateway = gateway()
        .fake_model(&model.v1())
        .env("OPENAI_API_KEY", "openai-of-the-gateway")
        .env("SET_BEFORE", "by the person")
        .config(json!({"skills": {"entries": entries}, "agents": {"list": list, "defaults": {"maxConcurrent": 2}}}))
        .prepare()
        .unwrap();
    let managed = gateway.state_dir().join("skills");
    write(
        &managed,
        "demo",
        "metadata: {\"openclaw\":{\"primaryEnv\":\"DEMO_KEY\",\"requires\":{\"env\":[\"DEMO_KEY\"]}}}",
    );
    write(&managed, "speech", "metadata: {\"openclaw\":{\"primaryEnv\":\"OPENAI_API_KEY\"}}");
    write(&managed, "off", "");
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let mut said = async |session: &str, run: &str| {
        turn(&mut client, session, "go", run).await;
        let request = model.requests().pop().unwrap();
        request.messages().last().unwrap()["content"].as_str().unwrap().trim().to_owned()
    };
    let redacted = "__OPENCLAW_REDACTED__";
    let expect = format!("[{redacted}|{}|here|{redacted}|by the person]", KEY.len());
    assert_eq!(said("main", "run-1").await, expect);
    assert_eq!(
        said("agent:plain:main", "run-2").await,
        "[|0|||by the person]",
        "another agent has nothing of it"
    );
}

#[tokio::test]
async fn strange_files_in_the_place_of_skills_hold_nothing_up() {
    let model = model().await;
    let mut gateway = gateway().fake_model(&model.v1()).prepare().unwrap();
    let dir = own(&gateway);
    write(&dir, "good", "");
    let make = |name: &str| {
        std::fs::create_dir_all(dir.join(name)).unwrap();
        dir.join(name).join("SKILL.md")
    };
    nix::unistd::mkfifo(&make("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    std::fs::create_dir(make("directory")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", make("device")).unwrap();
    std::os::unix::fs::symlink("..", dir.join("loop")).unwrap();
    std::fs::write(make("latin"), b"---\nname: latin\ndescription: caf\xe9\n---\n").unwrap();
    let huge = std::fs::File::create(make("huge")).unwrap();
    std::io::Write::write_all(&mut &huge, b"---\nname: huge\ndescription: Big\n---\n").unwrap();
    huge.set_len(50 << 20).unwrap();
    gateway.start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-1").await;
    assert_eq!(last_listed(&model), ["good", "huge", "latin"]);
    for name in ["pipe", "device"] {
        gateway.logged(&format!("{name}/SKILL.md is not a regular file")).await.unwrap();
    }
}

/// OpenClaw's own programs read it in the answers and in the rows behind them.
#[tokio::test]
async fn the_row_remembers_the_skills_over_a_patch_and_a_reset() {
    let model = model().await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    turn(&mut client, "main", "hello", "run-1").await;
    let kept = row(&gateway, "agent:main:main").await["skillsSnapshot"].clone();
    assert!(kept["skills"].is_array(), "{kept}");
    let rows = [
        ("sessions.patch", json!({"key": "main", "thinkingLevel": "low"})),
        ("sessions.reset", json!({"key": "main"})),
    ];
    for (method, params) in rows {
        let answer = client.request(method, params).await.unwrap();
        assert_eq!(answer["entry"]["skillsSnapshot"], kept, "{method}: {answer}");
        let file = sessions_dir(&gateway).join("sessions.json");
        let begun = Instant::now();
        loop {
            let rows: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap_or_default();
            let row = &rows["agent:main:main"];
            if (&row["sessionId"], &row["skillsSnapshot"]) == (&answer["entry"]["sessionId"], &kept) {
                break;
            }
            assert!(begun.elapsed() < PATIENCE, "{method}: {row}");
            tokio::task::yield_now().await;
        }
    }
}
