//! Slash commands made of skills, and `openclaw skills`.

use std::os::unix::fs::PermissionsExt as _;

use openclaw_testkit::GatewayUnderTest;
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::openclaw;
use crate::support::connect::listener;
use crate::support::conversation::{end, history, message, send, turn, words};
use crate::support::hooks::Heard;
use crate::support::skills::{own, write};

/// A gateway with one skill that asks the agent and one that calls a tool.
async fn with_skills(model: &ModelServer, config: Value) -> GatewayUnderTest {
    let mut gateway = gateway().fake_model(&model.v1()).config(config).prepare().unwrap();
    write(&own(&gateway), "hello-world", "");
    write(&own(&gateway), "shell", "command-dispatch: tool\ncommand-tool: exec");
    write(&own(&gateway), "status", "");
    write(&own(&gateway), "silent", "user-invocable: false");
    gateway.start().await.unwrap();
    gateway
}

async fn model() -> ModelServer {
    ModelServer::answering(|_| Reply::text("from the model")).await
}

#[tokio::test]
async fn a_skill_is_called_by_its_command_or_its_name() {
    let model = model().await;
    let gateway = with_skills(&model, json!({})).await;
    let mut client = gateway.client().await.unwrap();
    let ask = |skill: &str, input: &str| format!("Use the \"{skill}\" skill for this request.{input}");
    let rows = [
        ("/hello_world", ask("hello-world", "")),
        ("/HELLO_WORLD in two\nlines", ask("hello-world", "\n\nUser input:\nin two\nlines")),
        ("/skill Hello_World now", ask("hello-world", "\n\nUser input:\nnow")),
        ("/status_2", ask("status", "")),
        ("/new /hello_world now", ask("hello-world", "\n\nUser input:\nnow")),
        // No command of a skill.
        ("/hello-world", "/hello-world".to_owned()),
        ("/silent x", "/silent x".to_owned()),
    ];
    for (n, (text, expect)) in rows.into_iter().enumerate() {
        assert_eq!(turn(&mut client, "main", text, &format!("run-{n}")).await, "from the model", "{text}");
        let asked = model.requests()[n].last_user_text();
        assert_eq!(words(&asked), expect, "{text}");
    }
    let count = model.requests().len();
    let list = "Skills you can call, each also as /skill <name>:\n/hello_world - About hello-world\n\
                /shell - About shell\n/status_2 - About status";
    assert_eq!(turn(&mut client, "main", "/skill", "list").await, list);
    let unknown = turn(&mut client, "main", "/skill other x", "unknown").await;
    assert_eq!(unknown, format!("There is no skill \"other\" to call.\n{list}"));
    assert_eq!(model.requests().len(), count, "the gateway answers by itself");
}

#[tokio::test]
async fn a_skill_that_names_a_tool_calls_it_without_the_model() {
    const SECRET: &str = "ghp_0123456789abcdef";
    let model = model().await;
    let config = json!({"env": {"vars": {"GITHUB_TOKEN": SECRET}}});
    let gateway = with_skills(&model, config).await;
    let mut client = gateway.client().await.unwrap();
    let rows = [
        (
            "/shell echo  'two  blanks'; pwd",
            format!("two  blanks\n{}", own(&gateway).parent().unwrap().display()),
        ),
        ("/skill shell true", "(no output)".to_owned()),
        ("/shell echo $GITHUB_TOKEN", "__OPENCLAW_REDACTED__".to_owned()),
        ("/shell echo no; exit 3", "❌ no\n\nCommand exited with code 3".to_owned()),
    ];
    for (n, (text, expect)) in rows.iter().enumerate() {
        assert_eq!(turn(&mut client, "main", text, &format!("run-{n}")).await, *expect, "{text}");
    }
    assert!(model.requests().is_empty(), "no model is called");
    let kept = history(&mut client, "main").await;
    assert!(kept.iter().any(|line| line.contains("two  blanks")), "{kept:?}");
    assert!(!kept.concat().contains(SECRET));
}

#[tokio::test]
async fn the_policy_of_tools_holds_for_commands_too() {
    let model = model().await;
    let gateway = with_skills(&model, json!({"tools": {"deny": ["exec"]}})).await;
    let mut client = gateway.client().await.unwrap();
    let said = turn(&mut client, "main", "/shell touch it-ran", "run-1").await;
    assert_eq!(said, "❌ Tool not available: exec");
    assert!(!gateway.state_dir().join("workspace/it-ran").exists());
}

#[tokio::test]
async fn a_tool_call_is_stopped_and_after_a_crash_not_made_again() {
    let model = model().await;
    let mut gateway = with_skills(&model, json!({})).await;
    let workspace = gateway.state_dir().join("workspace");
    let count =
        |name: &str| std::fs::read_to_string(workspace.join(name)).unwrap_or_default().lines().count();
    let mut client = gateway.client().await.unwrap();
    send(&mut client, "main", "/shell echo x >> first; sleep 600", "run-1").await;
    while count("first") == 0 {
        tokio::task::yield_now().await;
    }
    client.request("chat.abort", json!({"sessionKey": "main"})).await.unwrap();
    end(&mut client, "run-1").await;
    let second = "/shell echo x >> second; sleep 600";
    send(&mut client, "main", second, "run-2").await;
    while count("second") == 0 {
        tokio::task::yield_now().await;
    }
    gateway.crash_and_restart().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "/shell echo after", "run-3").await, "after");
    assert_eq!((count("first"), count("second")), (1, 1), "each was made once");
    let kept = history(&mut client, "main").await;
    assert!(
        kept.iter().any(|line| line.contains("The gateway stopped while this was under way")),
        "{kept:?}"
    );
    let again = client.request("chat.send", message("main", second, "run-2")).await.unwrap();
    assert_eq!(count("second"), 1, "{again}");
}

/// A program that commands in a sandbox may have written would run outside of it.
#[tokio::test]
async fn a_program_from_where_a_sandbox_may_write_is_none_that_a_skill_has() {
    for (access, may_use) in [("rw", false), ("ro", true)] {
        let shared = tempfile::tempdir().unwrap();
        let program = shared.path().join("bin/its-own-program");
        std::fs::create_dir(program.parent().unwrap()).unwrap();
        std::fs::write(&program, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let sandbox = json!({"mode": "all", "workspaceAccess": access});
        let work = json!({"id": "work", "workspace": shared.path(), "sandbox": sandbox});
        let config = json!({"agents": {"list": [{"id": "main", "default": true}, work]}});
        let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
        let home = gateway().config(config).env("PATH", path).prepare().unwrap();
        write(
            &own(&home),
            "needy",
            "metadata: {\"openclaw\":{\"requires\":{\"bins\":[\"its-own-program\"]}}}",
        );
        let info = crate::support::command::json_of(&home, &["skills", "info", "needy", "--json"]).await;
        assert_eq!(info["eligible"], may_use, "{access}: {info}");
    }
}

#[tokio::test]
async fn the_command_line_tells_of_skills_without_a_gateway() {
    let home = gateway()
        .config(json!({"skills": {"entries": {"off": {"enabled": false}}, "allowBundled": ["bundled-one"]}}))
        .prepare()
        .unwrap();
    let bundled = home.home().join("bundled");
    write(&bundled, "bundled-one", "");
    write(&bundled, "bundled-two", "");
    write(&own(&home), "off", "");
    let needs = "metadata: {\"openclaw\":{\"emoji\":\"🐙\",\"requires\":{\"bins\":[\"no-such-program\"]},\"install\":[{\"kind\":\"brew\",\"formula\":\"x\"}]}}";
    write(&own(&home), "needy", needs);
    let run = async |args: &[&str]| {
        let mut command = home.command();
        command.args(["skills"]).args(args).env("OPENCLAW_BUNDLED_SKILLS_DIR", &bundled);
        crate::support::command::Ended::of(command).await
    };
    let json = |ended: &crate::support::command::Ended| -> Value {
        serde_json::from_str(&ended.out).unwrap_or_else(|e| panic!("{e}: {ended:?}"))
    };
    let list = json(&run(&["list", "--json"]).await);
    let told: Vec<Value> = list["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            json!([
                row["name"],
                row["eligible"],
                row["disabled"],
                row["blockedByAllowlist"],
                row["missing"]["bins"]
            ])
        })
        .collect();
    let expect = [
        json!(["bundled-one", true, false, false, []]),
        json!(["bundled-two", false, false, true, []]),
        json!(["needy", false, false, false, ["no-such-program"]]),
        json!(["off", false, true, false, []]),
    ];
    assert_eq!(told, expect);
    assert_eq!(list["managedSkillsDir"], home.state_dir().join("skills").display().to_string());
    let eligible = run(&["list", "--eligible"]).await;
    assert!(eligible.out.starts_with("Skills (1/1 ready)\n┌"), "{eligible:?}");
    let verbose = run(&["list", "-v"]).await;
    assert!(verbose.out.contains("bins: no-such-program"), "{verbose:?}");
    let check = json(&run(&["check", "--json"]).await);
    let summary = json!({"total": 4, "eligible": 1, "disabled": 1, "blocked": 1, "missingRequirements": 1});
    assert_eq!(check["summary"], summary);
    assert_eq!(check["missingRequirements"][0]["install"][0]["label"], "Install x (brew)");
    let info = json(&run(&["info", "needy", "--json"]).await);
    assert_eq!(
        (&info["skillKey"], &info["requirements"]["bins"]),
        (&json!("needy"), &json!(["no-such-program"]))
    );
    assert!(run(&["info", "needy"]).await.out.contains("  Binaries: ✗ no-such-program"));
    assert!(run(&["check"]).await.out.contains("  🐙 needy (bins: no-such-program)"));
    run(&["info", "ghost"]).await.failed(&["Skill \"ghost\" not found."]);
    let bare = openclaw(&home, &["skills"]).await;
    assert_eq!(bare.code, Some(0), "{bare:?}");
}

#[tokio::test]
async fn clients_and_hooks_are_told_of_the_tool_of_a_command() {
    const SECRET: &str = "ghp_0123456789abcdef";
    let model = model().await;
    let dir = tempfile::tempdir().unwrap();
    let mut heard = Heard::at(dir.path().join("heard"));
    let told = format!("given=$(cat); printf '%s\\n' \"$given\" > {}", heard.path().display());
    let hook = json!({"event": "after_tool_call", "command": ["/bin/sh", "-c", told]});
    let gateway = with_skills(
        &model,
        json!({
            "env": {"vars": {"GITHUB_TOKEN": SECRET}},
            "agents": {"defaults": {"verboseDefault": "full"}},
            "hooks": {"internal": {"enabled": true, "commands": [hook]}},
        }),
    )
    .await;
    let mut client = listener(gateway.port()).await;
    assert_eq!(
        turn(&mut client, "main", "/shell echo one $GITHUB_TOKEN", "run-1").await,
        "one __OPENCLAW_REDACTED__"
    );
    let events = client.take_passed();
    let phases: Vec<_> = events
        .iter()
        .map(|event| &event["payload"])
        .filter(|payload| payload["runId"] == "run-1" && payload["stream"] == "tool")
        .map(|payload| (payload["data"]["phase"].as_str().unwrap(), payload["data"]["name"].clone()))
        .filter(|(phase, _)| *phase != "update")
        .collect();
    assert_eq!(phases, [("start", json!("exec")), ("result", json!("exec"))]);
    let shown = serde_json::to_string(&events).unwrap();
    assert!(shown.contains("one __OPENCLAW_REDACTED__") && !shown.contains(SECRET), "{shown}");
    assert!(!shown.contains("lifecycle"), "no run: {shown}");
    let call = heard.next().await;
    assert_eq!((&call["hook"], &call["payload"]["toolName"]), (&json!("after_tool_call"), &json!("exec")));
    assert_eq!(call["payload"]["params"]["skillName"], "shell");
    assert!(!call.to_string().contains(SECRET), "{call}");

    turn(&mut client, "main", "/shell exit 3", "run-2").await;
    let call = heard.next().await;
    assert!(call["payload"]["error"].as_str().unwrap().contains("Command exited with code 3"), "{call}");
}
