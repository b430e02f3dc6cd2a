//! What a newcomer is told holds: the doctor gives no false all-clear, and advice names what is there: the unit of the service, the program
//! on the port, the account that was added a moment ago.

use std::path::Path;

use openclaw_testkit::TOKEN;
use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::telegram::TelegramServer;
use serde_json::{Value, json};

use crate::gateway;
use crate::support::command::{Ended, has, json_of, ok, openclaw, unaware};

fn lacks(text: &str, words: &[&str]) {
    for word in words {
        assert!(!text.contains(word), "\"{word}\" in: {text}");
    }
}

const ALL_CLEAR: &[&str] = &["State is in order", "Agent main uses"];

#[tokio::test]
async fn the_doctor_names_an_address_without_a_scheme_and_a_host_that_is_not_there() {
    let rows = [
        ("localhost:1234", vec!["\"localhost:1234\" is not an http(s) address", "http://localhost:1234"]),
        ("http://nosuchhost.invalid/v1", vec!["is down: nothing answers at http://nosuchhost.invalid/v1"]),
    ];
    for (address, expect) in rows {
        let gateway = gateway().fake_model(address).prepare().unwrap();
        let told = ok(&gateway, &["doctor"]).await;
        has(&told, &expect);
        lacks(&told, ALL_CLEAR);
    }
    // That of a provider that is not in use is told too.
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let other =
        json!({"models": {"providers": {"other": {"baseUrl": "10.0.0.7/v1", "apiKey": "k", "models": []}}}});
    let gateway = gateway().fake_model(&model.v1()).config(other).prepare().unwrap();
    let told = ok(&gateway, &["doctor"]).await;
    has(&told, &["Calls of models of other fail: \"10.0.0.7/v1\" is not an http(s) address"]);
    lacks(&told, &["State is in order"]);
}

#[tokio::test]
async fn the_doctor_says_that_a_key_came_after_the_gateways_start() {
    // Servers of this machine need no key.
    let elsewhere = json!({
        "agents": {"defaults": {"model": {"primary": "anthropic/claude-opus-4-6"}}},
        "models": {"providers": {"anthropic": {"baseUrl": "http://nosuchhost.invalid", "models": []}}},
    });
    let mut gateway = gateway().config(elsewhere).start().await.unwrap();
    std::fs::write(gateway.state_dir().join(".env"), "ANTHROPIC_API_KEY=fake-key\n").unwrap();
    let told = ok(&gateway, &["doctor"]).await;
    let pid = gateway.pid().unwrap();
    has(
        &told,
        &[&format!("The running gateway (pid {pid}) has no credential for anthropic"), "restart the gateway"],
    );
    lacks(&told, ALL_CLEAR);
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    let told = ok(&gateway, &["doctor"]).await;
    has(&told, &["nothing answers at http://nosuchhost.invalid"]);
    lacks(&told, &["restart the gateway", "no credential"]);
}

/// With no model chosen a gateway without a key has none: what is found here is not what it uses.
#[tokio::test]
async fn the_doctor_says_that_the_gateway_has_no_model_though_a_key_came_after_its_start() {
    let gateway = gateway().start().await.unwrap();
    let told = ok(&gateway, &["doctor"]).await;
    has(
        &told,
        &[
            "No model is connected: the built-in offline/guide answers.",
            "~/.openclaw/.env",
            "models auth add",
        ],
    );
    lacks(&told, &["says what is missing"]);
    std::fs::write(gateway.state_dir().join(".env"), "ANTHROPIC_API_KEY=fake-key\n").unwrap();
    let told = ok(&gateway, &["doctor"]).await;
    let pid = gateway.pid().unwrap();
    has(
        &told,
        &[
            &format!(
                "The running gateway (pid {pid}) has no model and answers with the built-in offline/guide."
            ),
            "anthropic/claude-opus-4-6 is found here",
            &format!("stop it (pid {pid}) and start it again: openclaw gateway"),
        ],
    );
    lacks(&told, ALL_CLEAR);
}

#[tokio::test]
async fn the_doctor_claims_no_more_of_a_model_than_it_checked() {
    let model =
        ModelServer::answering(|_| Reply::openai_error(401, "invalid_request_error", "bad key")).await;
    let typo = json!({"agents": {"defaults": {"model": {"primary": "fake/typo"}}}});
    let unknown = gateway().fake_model(&model.v1()).config(typo).prepare().unwrap();
    let told = ok(&unknown, &["doctor"]).await;
    has(
        &told,
        &[
            "Agent main uses fake/typo: fake does not list \"typo\" (models.providers.fake.models has: fake-1).",
        ],
    );
    lacks(&told, &["State is in order"]);

    let mut refused = gateway().fake_model(&model.v1()).prepare().unwrap();
    let dir = refused.state_dir().join("agents/main/agent");
    std::fs::create_dir_all(&dir).unwrap();
    let profile = json!({"type": "api_key", "provider": "fake", "key": "fake-key"});
    let store = json!({"version": 1, "profiles": {"fake:manual": profile}});
    std::fs::write(dir.join("auth-profiles.json"), store.to_string()).unwrap();
    let reached = "Agent main uses fake/fake-1. Its server can be reached. Whether it answers: openclaw models status --probe";
    has(&ok(&refused, &["doctor"]).await, &[reached]);
    refused.start().await.unwrap();
    let run = openclaw(&refused, &["agent", "--agent", "main", "--message", "hello"]).await;
    run.failed(&["401"]);
    // How a credential did is written at the end at the latest.
    refused.terminate().await.unwrap();
    let told = ok(&refused, &["doctor"]).await;
    has(
        &told,
        &[
            "The last calls of fake/fake-1 with credential fake:manual failed (auth). Whether it answers now: openclaw models \
             status --probe",
        ],
    );
    lacks(&told, ALL_CLEAR);
}

#[tokio::test]
async fn the_doctor_counts_what_the_security_audit_calls_critical() {
    let open = json!({"channels": {"telegram": {"botToken": "1:TEST-token-x", "dmPolicy": "open", "allowFrom": ["*"]}}});
    let gateway = gateway().config(open).prepare().unwrap();
    let audit = json_of(&gateway, &["security", "audit", "--json"]).await;
    let critical = audit["summary"]["critical"].as_u64().unwrap();
    assert!(critical > 0, "{audit}");
    let told = openclaw(&gateway, &["doctor", "--check"]).await;
    assert_eq!(told.code, Some(1), "{told:?}");
    has(&told.out, &["The security audit has ", "critical finding", "openclaw security audit"]);
    lacks(&told.out, &["State is in order"]);
}

/// Puts the README's unit into the home directory.
fn install_unit(home: &Path) {
    let dir = home.join(".config/systemd/user");
    std::fs::create_dir_all(&dir).unwrap();
    let unit =
        "[Service]\nExecStart=%h/.local/bin/openclaw gateway run\n\n[Install]\nWantedBy=default.target\n";
    std::fs::write(dir.join("openclaw-gateway.service"), unit).unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn with_the_unit_installed_it_is_what_starts_the_gateway() {
    let port = openclaw_testkit::ReservedPort::any().unwrap();
    let number = port.number().unwrap();
    let gateway = gateway().config(json!({"gateway": {"port": number}})).prepare().unwrap();
    has(&unaware(&gateway, &["status"]).await.out, &["Need a gateway?     openclaw gateway"]);
    install_unit(gateway.home());
    let start = "systemctl --user start openclaw-gateway";
    for page in
        [&["status"][..], &["health"], &["gateway", "status"], &["doctor"], &["dashboard", "--no-open"]]
    {
        let ended = unaware(&gateway, page).await;
        let said = format!("{}{}", ended.out, ended.err);
        has(&said, &[start]);
        lacks(
            &said,
            &["`openclaw gateway`", "Need a gateway?     openclaw gateway", "one: openclaw gateway"],
        );
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_unit_is_enabled_when_systemd_says_so_or_a_target_wants_it() {
    use std::os::unix::fs::PermissionsExt as _;

    let gateway = gateway().prepare().unwrap();
    install_unit(gateway.home());
    let bin = tempfile::tempdir().unwrap();
    let loaded = async || -> Value {
        let mut command = gateway.command();
        command.args(["gateway", "status", "--json", "--no-probe"]).env("PATH", bin.path());
        let ended = Ended::of(command).await;
        serde_json::from_str::<Value>(&ended.out).unwrap()["service"]["loaded"].clone()
    };
    assert_eq!(loaded().await, false, "the file alone enables nothing");
    let wants = gateway.home().join(".config/systemd/user/default.target.wants");
    std::fs::create_dir(&wants).unwrap();
    std::os::unix::fs::symlink("../openclaw-gateway.service", wants.join("openclaw-gateway.service"))
        .unwrap();
    assert_eq!(loaded().await, true);
    // Where systemd can be asked, it is its word that counts.
    let systemctl = bin.path().join("systemctl");
    for (said, expect) in [("enabled", true), ("disabled", false), ("", true)] {
        let script = format!("#!/bin/sh\n[ \"$*\" = '--user is-enabled openclaw-gateway' ] && echo {said}\n");
        std::fs::write(&systemctl, script).unwrap();
        std::fs::set_permissions(&systemctl, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(loaded().await, expect, "{said}");
    }
}

#[tokio::test]
async fn an_account_that_was_added_a_moment_ago_is_taken_up_or_said_to_be() {
    let server = TelegramServer::start().await;
    let token = server.token();
    let add = ["channels", "add", "--channel", "telegram", "--token", &token];
    let section = json!({"channels": {"telegram": {"apiRoot": server.root()}}});
    let quick = gateway().config(section.clone()).start().await.unwrap();
    ok(&quick, &add).await;
    let status = ok(&quick, &["channels", "status"]).await;
    has(&status, &["- Telegram default: enabled, configured"]);
    lacks(&status, &["not configured"]);

    let slow = json!({"gateway": {"reload": {"debounceMs": 60_000}}});
    let slow = gateway().config(section.clone()).config(slow).start().await.unwrap();
    // The gateway has read the file once more, so that it waits for the end of the next edit.
    ok(&slow, &["channels", "logout", "--channel", "telegram"]).await;
    ok(&slow, &add).await;
    let status = ok(&slow, &["channels", "status"]).await;
    has(&status, &["- Telegram default: added, the gateway is taking it up; ask again in a moment\n"]);
    lacks(&status, &["not configured", "- none"]);

    let by_hand = json!({"gateway": {"reload": {"mode": "off"}}});
    let by_hand = gateway().config(section).config(by_hand).start().await.unwrap();
    ok(&by_hand, &add).await;
    let status = ok(&by_hand, &["channels", "status"]).await;
    has(
        &status,
        &["- Telegram default: in the configuration, not in the running gateway; to have it there, stop it"],
    );
    lacks(&status, &["not configured"]);
}

#[tokio::test]
async fn another_port_in_the_config_is_not_offered_to_be_taken_back() {
    let port = openclaw_testkit::ReservedPort::any().unwrap();
    let other = port.number().unwrap().to_string();
    let gateway = gateway().start().await.unwrap();
    let (own, pid) = (gateway.port().to_string(), gateway.pid().unwrap());
    let set = unaware(&gateway, &["config", "set", "gateway.port", &other]).await;
    let still = format!("The running gateway still listens on port {own}");
    has(&set.out, &[&still, &format!("stop it (pid {pid}) and start it again: openclaw gateway")]);
    let ended = unaware(&gateway, &["health"]).await;
    ended.failed(&[
        &format!("listens on port {own}"),
        &format!("OPENCLAW_GATEWAY_PORT={own}"),
        "If gateway.port was changed since the gateway started",
    ]);
    lacks(&ended.err, &["openclaw config set gateway.port"]);
    let doctor = unaware(&gateway, &["doctor"]).await.out;
    has(
        &doctor,
        &[
            &format!("listens on port {own}; this command asked"),
            &format!("(port from gateway.port). Pass OPENCLAW_GATEWAY_PORT={own} to this command."),
            &format!("stop it (pid {pid}) and start it again: openclaw gateway"),
        ],
    );
    lacks(&doctor, &["does not answer as it should"]);
}

#[tokio::test]
async fn a_program_that_holds_the_port_is_named_and_a_free_port_with_it() {
    let other = ModelServer::answering(|_| Reply::text("hello")).await;
    let url = other.url();
    let port: u16 = url.rsplit(':').next().unwrap().trim_end_matches('/').parse().unwrap();
    let gateway = gateway().config(json!({"gateway": {"port": port}})).prepare().unwrap();
    let held = format!("Port {port} is held by ");
    let pages: [&[&str]; 5] =
        [&["health"], &["status"], &["gateway", "status"], &["doctor"], &["dashboard", "--no-open"]];
    for page in pages {
        let ended = unaware(&gateway, page).await;
        let said = format!("{}{}", ended.out, ended.err);
        has(&said, &[&held, "Choose another port", "openclaw config set gateway.port "]);
        lacks(
            &said,
            &[
                "Start a gateway",
                "Need a gateway?     openclaw gateway",
                "To start one",
                "State is in order",
                // The other program would learn it from the address.
                TOKEN,
            ],
        );
    }
    let run = unaware(&gateway, &["gateway", "run"]).await;
    run.failed(&[&format!("port {port} is held by"), " is free: openclaw config set gateway.port "]);
    // The advice works: it is another port, and nobody has it.
    let hint = run.err.split("gateway.port ").last().unwrap().trim();
    let free: u16 = hint.parse().unwrap_or_else(|error| panic!("{error}: {hint}"));
    assert!(free != port && std::net::TcpListener::bind(("127.0.0.1", free)).is_ok(), "{hint}");
    // A flag or a variable goes before the config.
    let taken = port.to_string();
    let rows: [(&[&str], &str); 3] = [
        (&["gateway", "run"], "is free: set OPENCLAW_GATEWAY_PORT="),
        (&["gateway", "status"], "set OPENCLAW_GATEWAY_PORT="),
        (&["gateway", "run", "--port", &taken], "is free: pass --port "),
    ];
    for (args, advice) in rows {
        let mut command = gateway.command();
        command.args(args).env("OPENCLAW_GATEWAY_PORT", &taken);
        let ended = Ended::of(command).await;
        let said = format!("{}{}", ended.out, ended.err);
        has(&said, &[advice]);
        lacks(&said, &["config set gateway.port"]);
    }
}

#[tokio::test]
async fn a_command_that_is_not_there_says_what_helps_meanwhile() {
    let gateway = gateway().prepare().unwrap();
    for (words, expect) in [
        (&["cron", "--help"][..], "openclaw agent --agent main -m <text>"),
        (&["help", "plugins"], "openclaw hooks list"),
        (&["nodes", "status", "--help"], "openclaw status"),
        (&["gateway", "restart", "--help"], "systemctl --user restart openclaw-gateway"),
    ] {
        let page = ok(&gateway, words).await;
        has(&page, &["not implemented yet in this version", "Meanwhile: ", expect]);
    }
    openclaw(&gateway, &["cron", "list"]).await.failed(&["not implemented yet", "Meanwhile: "]);
    has(&ok(&gateway, &["models", "fallbacks", "add", "--help"]).await, &["Examples:\n  openclaw models"]);
    has(&ok(&gateway, &["message", "kick", "--help"]).await, &["Not there yet", "channels capabilities"]);
}
