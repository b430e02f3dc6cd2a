//! `openclaw agents …` and `agents.*`: adding, changing and removing agents, beside a gateway and without one.

use openclaw_testkit::GatewayUnderTest;
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{Ended, openclaw};

/// A directory with this config and no gateway.
fn home(config: Value) -> GatewayUnderTest {
    gateway().whole_config(config).prepare().unwrap()
}

/// The config as it is now, without its stamp.
fn config(home: &GatewayUnderTest) -> Value {
    let text = std::fs::read_to_string(home.state_dir().join("openclaw.json")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config.as_object_mut().unwrap().remove("meta");
    config
}

/// The recorded runs of `cli-agents-mutate.json`, one after the other, in one directory.
#[tokio::test]
async fn agents_are_added_changed_and_removed_as_recorded() {
    let home = home(json!({"gateway": {"mode": "local"}}));
    let state = home.state_dir();
    let workspace = home.home().join("ws").display().to_string();
    let agent_dir = state.join("agents/work/agent").display().to_string();
    let run = async |args: &str| {
        let args = args.replace("<WS>", &workspace);
        openclaw(&home, &args.split(' ').collect::<Vec<_>>()).await
    };

    let added = run("agents add work --non-interactive --workspace <WS> --json").await.json();
    let nothing = json!({"added": [], "skipped": [], "conflicts": []});
    let expect = json!({
        "agentId": "work", "name": "work", "workspace": workspace, "agentDir": agent_dir, "bindings": nothing,
    });
    assert_eq!(added.to_string(), expect.to_string());
    assert!(home.home().join("ws/AGENTS.md").exists() && state.join("agents/work/sessions").is_dir());

    run("agents add main --non-interactive --workspace /x --json")
        .await
        .failed(&["\"main\" is reserved. Choose another name."]);
    run("agents add work2 --non-interactive --json")
        .await
        .failed(&["Non-interactive mode requires --workspace. Re-run without flags to use the wizard."]);
    run("agents add Work --workspace <WS>").await.failed(&["Agent \"work\" already exists."]);

    let named = run("agents set-identity --agent work --name Bob --emoji X --json").await.json();
    let expect = json!({"agentId": "work", "identity": {"name": "Bob", "emoji": "X"}, "workspace": null, "identityFile": null});
    assert_eq!(named.to_string(), expect.to_string());
    let entry = json!({
        "id": "work", "name": "work", "workspace": workspace, "agentDir": agent_dir,
        "identity": {"name": "Bob", "emoji": "X"},
    });
    let list = json!([{"id": "main"}, entry]);
    assert_eq!(config(&home), json!({"gateway": {"mode": "local"}, "agents": {"list": list}}));

    let sessions = state.join("agents/work/sessions").display().to_string();
    let deleted = run("agents delete work --force --json").await.json();
    let expect = json!({
        "agentId": "work", "workspace": workspace, "agentDir": agent_dir, "sessionsDir": sessions,
        "removedBindings": 0, "removedAllow": 0,
    });
    assert_eq!(deleted.to_string(), expect.to_string());
    assert_eq!(config(&home), json!({"gateway": {"mode": "local"}, "agents": {"list": [{"id": "main"}]}}));
    assert!(!home.home().join("ws").exists() && !state.join("agents/work").exists());

    run("agents delete main --force --json").await.failed(&["\"main\" cannot be deleted."]);
    run("agents delete ghost --force").await.failed(&["Agent \"ghost\" not found."]);
}

#[tokio::test]
async fn whoever_deletes_the_default_agent_is_told_that_a_gateway_has_to_be_restarted() {
    let list = json!([{"id": "ops"}, {"id": "work"}, {"id": "spare"}]);
    let home = home(json!({"gateway": {"mode": "local"}, "agents": {"list": list}}));
    let delete = async |id: &str| {
        let ended = openclaw(&home, &["agents", "delete", id, "--force"]).await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.err
    };
    assert!(!delete("spare").await.contains("default agent"));
    let said = delete("ops").await;
    assert!(said.contains("default agent is \"work\" now") && said.contains("restarted"), "{said}");
}

#[tokio::test]
async fn wrong_channels_are_named_one_by_one_and_nothing_is_added() {
    let home =
        home(json!({"gateway": {"mode": "local"}, "plugins": {"entries": {"telegram": {"enabled": false}}}}));
    let args = [
        "agents",
        "add",
        "work",
        "--workspace",
        "/x",
        "--bind",
        "telegram:ops",
        "--bind",
        "pigeon",
        "--json",
    ];
    let failed = openclaw(&home, &args).await;
    failed.failed(&["Channel \"telegram\" is disabled", "Unknown channel \"pigeon\"."]);
    assert_eq!(config(&home)["agents"], Value::Null);
}

#[tokio::test]
async fn nobody_is_asked_where_nobody_can_answer() {
    let home =
        home(json!({"gateway": {"mode": "local"}, "agents": {"list": [{"id": "main"}, {"id": "work"}]}}));
    openclaw(&home, &["agents", "add", "ops"])
        .await
        .failed(&["no terminal", "--non-interactive --workspace"]);
    openclaw(&home, &["agents", "delete", "work"]).await.failed(&["--force"]);
    assert_eq!(config(&home)["agents"]["list"], json!([{"id": "main"}, {"id": "work"}]));
}

#[tokio::test]
async fn credentials_stay_with_their_agent_and_the_way_to_copy_them_is_told() {
    let home = home(json!({"gateway": {"mode": "local"}}));
    let own = home.state_dir().join("agents/main/agent");
    std::fs::create_dir_all(&own).unwrap();
    let secret = "{\"version\":1,\"profiles\":{\"a:b\":{\"type\":\"api_key\",\"provider\":\"a\",\"key\":\"sk-0815\"}}}";
    std::fs::write(own.join("auth-profiles.json"), secret).unwrap();
    let workspace = home.home().join("ws").display().to_string();
    let added = openclaw(&home, &["agents", "add", "ops", "--workspace", &workspace, "--json"]).await;
    added.json();
    assert!(added.err.contains("Credentials were not copied") && added.err.contains("cp '"), "{}", added.err);
    assert!(!added.err.contains("sk-0815"));
    assert!(!home.state_dir().join("agents/ops/agent/auth-profiles.json").exists());
}

#[tokio::test]
async fn an_identity_is_read_from_the_file_of_a_workspace() {
    let home =
        home(json!({"gateway": {"mode": "local"}, "agents": {"list": [{"id": "main"}, {"id": "work"}]}}));
    let workspace = home.state_dir().join("workspace-work");
    std::fs::create_dir_all(&workspace).unwrap();
    std::fs::write(workspace.join("IDENTITY.md"), "- **Name:** Ada\n- **Creature:** owl\n- **Emoji:** 🦉\n")
        .unwrap();
    let text = workspace.display().to_string();
    let file = workspace.join("IDENTITY.md").display().to_string();
    let expect = json!({
        "agentId": "work", "identity": {"name": "Bea", "theme": "owl", "emoji": "🦉"}, "workspace": text, "identityFile": file,
    });
    for place in [["--workspace", &text], ["--agent", "work"], ["--identity-file", &file]] {
        let args =
            ["agents", "set-identity", place[0], place[1], "--from-identity", "--name", "Bea", "--json"];
        assert_eq!(openclaw(&home, &args).await.json(), expect, "{place:?}");
    }
    let nowhere =
        openclaw(&home, &["agents", "set-identity", "--workspace", "/nowhere", "--name", "x"]).await;
    nowhere.failed(&["No agent has the workspace /nowhere", "--agent"]);
    let blank = openclaw(&home, &["agents", "set-identity", "--agent", "main"]).await;
    blank.failed(&["No identity data found in", "IDENTITY.md"]);
}

#[tokio::test]
async fn an_identity_file_that_never_ends_is_refused() {
    let home =
        home(json!({"gateway": {"mode": "local"}, "agents": {"list": [{"id": "main"}, {"id": "work"}]}}));
    let workspace = home.state_dir().join("workspace-work");
    std::fs::create_dir_all(&workspace).unwrap();
    let file = workspace.join("IDENTITY.md");
    let set = async |place: [&str; 2]| {
        openclaw(&home, &["agents", "set-identity", place[0], place[1], "--from-identity"]).await
    };
    let text = workspace.display().to_string();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    set(["--workspace", &text])
        .await
        .failed(&["IDENTITY.md: it is not a regular file", "Put a regular file"]);
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
    set(["--workspace", &text])
        .await
        .failed(&["IDENTITY.md: it is a link that leads to no file of the workspace"]);
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "x".repeat(70_000)).unwrap();
    set(["--workspace", &text]).await.failed(&["IDENTITY.md: it is larger than 64 KiB"]);
    let elsewhere = home.home().join("elsewhere.md");
    std::os::unix::fs::symlink("/dev/zero", &elsewhere).unwrap();
    let named = ["agents", "set-identity", "--agent", "work", "--identity-file", elsewhere.to_str().unwrap()];
    openclaw(&home, &named).await.failed(&["elsewhere.md: it is not a regular file"]);
}

/// The recorded text of `cli-agents.json`.
#[tokio::test]
async fn agents_are_listed_with_their_routing_rules() {
    let home = home(json!({
        "gateway": {"mode": "local"},
        "agents": {"defaults": {"model": {"primary": "mock/mock-1"}}, "list": [
            {"id": "main", "name": "Main", "default": true},
            {"id": "work", "name": "Work", "workspace": "/ws", "identity": {"name": "Worker", "emoji": "🛠"}},
        ]},
        "bindings": [{"agentId": "work", "match": {"channel": "telegram", "accountId": "default"}}],
    }));
    let ended = openclaw(&home, &["agents", "list", "--bindings"]).await;
    let lines: Vec<&str> = ended.out.lines().collect();
    let expect = [
        "Agents:",
        "- main (default) (Main)",
        "  Workspace: ~/.openclaw/workspace",
        "  Agent dir: ~/.openclaw/agents/main/agent",
        "  Model: mock/mock-1",
        "  Routing rules: 0",
        "  Routing: default (no explicit rules)",
        "- work (Work)",
        "  Identity: 🛠 Worker (config)",
        "  Workspace: /ws",
        "  Agent dir: ~/.openclaw/agents/work/agent",
        "  Model: mock/mock-1",
        "  Routing rules: 1",
        "  Routing rules:",
        "    - telegram accountId=default",
        "Routing rules map channel/account/peer to an agent.",
    ];
    assert_eq!(lines, expect, "{ended:?}");
}

#[tokio::test]
async fn a_route_is_told_without_a_gateway() {
    let home = home(json!({
        "gateway": {"mode": "local"},
        "agents": {"list": [{"id": "main"}, {"id": "work"}]},
        "bindings": [{"agentId": "work", "match": {"channel": "discord", "guildId": "g1"}}],
    }));
    let args =
        ["agents", "route", "--channel", "discord", "--peer", "channel:P", "--guild", "g1", "--thread", "T"];
    let text = openclaw(&home, &args).await;
    assert_eq!(text.code, Some(0), "{text:?}");
    for line in [
        "Agent:   work",
        "Session: agent:work:discord:channel:t",
        "bindings[0] claims discord guild=g1 (binding.guild)",
    ] {
        assert!(text.out.contains(line), "no \"{line}\" in:\n{}", text.out);
    }
    let route = openclaw(&home, &[&args[..], &["--json"]].concat()).await.json();
    assert_eq!(route["parentSessionKey"], "agent:work:discord:channel:p");
    assert_eq!((&route["matchedBy"], &route["reset"]["type"]), (&json!("binding.guild"), &json!("thread")));
    let unknown = openclaw(&home, &["agents", "route", "--channel", "pigeon", "--peer", "dm:1"]).await;
    assert_eq!(unknown.code, Some(0), "{unknown:?}");
    assert!(unknown.err.starts_with("Warning: there is no platform \"pigeon\" (there is: "), "{unknown:?}");
    let long = "g".repeat(10_000);
    openclaw(&home, &["agents", "route", "--channel", "signal", "--peer", &format!("group:{long}")])
        .await
        .failed(&["too long, at most 4096"]);
}

#[tokio::test]
async fn a_running_gateway_knows_an_agent_as_soon_as_it_is_added_and_no_longer_when_it_is_deleted() {
    let gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let patch = json!({"key": "agent:work:main", "thinkingLevel": "low"});
    assert!(
        client.request("sessions.patch", patch.clone()).await.is_err(),
        "a message does not make an agent"
    );

    let workspace = gateway.home().join("ws").display().to_string();
    let added = openclaw(&gateway, &["agents", "add", "work", "--workspace", &workspace, "--json"]).await;
    added.json();
    gateway.logged("config change applied: agents.list").await.unwrap();
    let agents = client.request("agents.list", json!({})).await.unwrap();
    assert_eq!(agents["agents"], json!([{"id": "main"}, {"id": "work", "name": "work"}]));
    client.request("sessions.patch", patch.clone()).await.unwrap();
    let keys = async |client: &mut openclaw_testkit::WsClient| {
        let list = client.request("sessions.list", json!({})).await.unwrap();
        let rows = list["sessions"].as_array().unwrap();
        rows.iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&mut client).await, ["agent:work:main"]);

    let deleted = client.request("agents.delete", json!({"agentId": "work"})).await.unwrap();
    assert_eq!(deleted, json!({"ok": true, "agentId": "work", "removedBindings": 0}));
    let agents = client.request("agents.list", json!({})).await.unwrap();
    assert_eq!(agents["agents"], json!([{"id": "main"}]));
    assert!(client.request("sessions.patch", patch).await.is_err());
    assert_eq!(keys(&mut client).await, [""; 0]);
    assert!(!gateway.home().join("ws").exists() && !gateway.state_dir().join("agents/work").exists());
    if cfg!(target_os = "linux") {
        let trash = gateway.home().join(".local/share/Trash/files");
        assert!(trash.join("openclaw-work-sessions/sessions.json").exists());
    }
}

#[tokio::test]
async fn many_agents_created_at_once_are_all_there() {
    let gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let workspace = gateway.home().join("shared").display().to_string();
    for at in 0..5 {
        let params = json!({"name": format!("Agent {at}"), "workspace": workspace, "emoji": "🧪"});
        client.request("agents.create", params).await.unwrap();
    }
    let agents = client.request("agents.list", json!({})).await.unwrap();
    let ids: Vec<&str> =
        agents["agents"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["main", "agent-0", "agent-1", "agent-2", "agent-3", "agent-4"]);
    // The workspace is shared: it stays when one of them goes.
    client.request("agents.delete", json!({"agentId": "agent-3"})).await.unwrap();
    assert!(gateway.home().join("shared/IDENTITY.md").exists());
}

#[tokio::test]
async fn a_line_feed_in_a_name_begins_no_line_of_a_list() {
    let config = json!({"gateway": {"mode": "local"}, "agents": {"list": [{"id": "bad", "name": "Bad\n- main (default)"}]}});
    let gateway = gateway().whole_config(config).prepare().unwrap();
    let listed = openclaw(&gateway, &["agents", "list"]).await;
    assert!(listed.out.contains("- bad (default) (Bad\\n- main (default))\n"), "{listed:?}");
}

#[tokio::test]
async fn a_workspace_is_in_the_home_directory_and_files_elsewhere_are_told() {
    let setup =
        gateway().env("OPENCLAW_STATE_DIR", "~/s").env("OPENCLAW_CONFIG_PATH", "~/.openclaw/openclaw.json");
    let mut gateway = setup.prepare().unwrap();
    let other = gateway.home().join("s/workspace");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("AGENTS.md"), "mine").unwrap();
    gateway.start().await.unwrap();
    let workspace = gateway.home().join(".openclaw/workspace");
    let told =
        format!("agent main works in {}, but there are files in {}", workspace.display(), other.display());
    gateway.logged(&told).await.unwrap();
    let doctor = openclaw(&gateway, &["doctor"]).await;
    assert!(doctor.out.contains(&told), "{doctor:?}");
    let agents =
        gateway.client().await.unwrap().request("agents.files.list", json!({"agentId": "main"})).await;
    assert_eq!(agents.unwrap()["workspace"], workspace.display().to_string());
}

/// The default agent's is in the home directory, those of other agents are in the profile's own one.
#[tokio::test]
async fn the_other_agents_of_a_profile_share_no_workspace_with_another_profile() {
    let home = gateway().prepare().unwrap();
    let list = json!({"agents": {"list": [{"id": "main", "default": true}, {"id": "ops"}]}});
    for profile in ["job", "home"] {
        let state = home.home().join(format!(".openclaw-{profile}"));
        std::fs::create_dir_all(&state).unwrap();
        std::fs::write(state.join("openclaw.json"), list.to_string()).unwrap();
        let mut command = home.command();
        command.env_remove("OPENCLAW_STATE_DIR").args(["--profile", profile, "agents", "list", "--json"]);
        let listed = Ended::of(command).await;
        let listed: Value = serde_json::from_str(&listed.out).unwrap();
        let places: Vec<&Value> =
            listed.as_array().unwrap().iter().map(|agent| &agent["workspace"]).collect();
        let main = home.home().join(format!(".openclaw/workspace-{profile}"));
        let expect = [main, state.join("workspace-ops")].map(|path| json!(path.display().to_string()));
        assert_eq!(places, expect.iter().collect::<Vec<_>>(), "{listed}");
    }
}
