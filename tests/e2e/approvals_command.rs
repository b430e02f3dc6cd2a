//! `openclaw approvals`: the file of this host, and that of a running gateway.

use std::path::PathBuf;
use std::process::Stdio;

use openclaw_testkit::GatewayUnderTest;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::gateway;
use crate::support::command::{Ended, openclaw};

fn path(gateway: &GatewayUnderTest) -> PathBuf {
    gateway.state_dir().join("exec-approvals.json")
}

fn on_disk(gateway: &GatewayUnderTest) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path(gateway)).unwrap()).unwrap()
}

async fn approvals(gateway: &GatewayUnderTest, args: &[&str]) -> Ended {
    openclaw(gateway, &[&["approvals"], args].concat()).await
}

#[track_caller]
fn json_of(ended: &Ended) -> Value {
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    serde_json::from_str(&ended.out).unwrap()
}

#[track_caller]
fn said(ended: &Ended) -> &str {
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    ended.out.trim_end()
}

/// Gives the new file on standard input.
async fn set_from_stdin(gateway: &GatewayUnderTest, flags: &[&str], text: &str) -> Ended {
    let mut command = gateway.command();
    command.args(["approvals", "set", "--stdin", "--json"]).args(flags);
    if gateway.port() != 0 {
        command.env("OPENCLAW_GATEWAY_PORT", gateway.port().to_string());
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

#[tokio::test]
async fn the_file_of_this_host_needs_no_gateway() {
    let home = gateway().prepare().unwrap();
    let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let empty = json!({"version": 1, "socket": {}, "defaults": {}, "agents": {}});
    let none =
        json!({"path": path(&home).display().to_string(), "exists": false, "hash": hash, "file": empty});
    assert_eq!(json_of(&approvals(&home, &["get", "--json"]).await), none);
    assert!(!path(&home).exists(), "reading makes no file");
    let shown = approvals(&home, &["get"]).await;
    assert!(shown.out.starts_with("Showing local approvals.\n\nApprovals\n┌"), "{shown:?}");
    let unheeded = "The rules hold only with tools.exec.host=gateway, or tools.exec.security or tools.exec.ask set (now: none";
    assert!(shown.out.contains(&format!("┘\n\nNo allowlist entries.\n\n{unheeded}")), "{shown:?}");

    let added = approvals(&home, &["allowlist", "add", "~/bin/rg"]).await;
    assert!(said(&added).starts_with("Writing local approvals.\nTarget: local\nApprovals\n┌"), "{added:?}");
    assert!(added.out.contains("│ local    │ *      │ ~/bin/rg "), "{added:?}");
    assert!(added.out.contains("│ never     │") && added.out.contains(unheeded), "{added:?}");
    let entry = &on_disk(&home)["agents"]["*"]["allowlist"][0];
    assert!(entry["lastUsedAt"].is_null() && entry["id"].is_string(), "{entry}");

    let before = std::fs::read(path(&home)).unwrap();
    assert_eq!(said(&approvals(&home, &["allowlist", "add", " ~/bin/rg"]).await), "Already allowlisted.");
    assert_eq!(said(&approvals(&home, &["allowlist", "remove", "~/bin/fd"]).await), "Pattern not found.");
    assert_eq!(std::fs::read(path(&home)).unwrap(), before, "nothing is written");

    let of_agent = ["allowlist", "add", "/usr/bin/jq", "--agent", "Work", "--json"];
    let added = approvals(&home, &of_agent).await;
    assert!(added.err.starts_with("Warning: there is no agent \"work\" (there is: main)."), "{added:?}");
    let document: Value = serde_json::from_str(&added.out).unwrap();
    approvals(&home, &["allowlist", "remove", "/usr/bin/jq"])
        .await
        .failed(&["is not on the list of every agent (*). It stands under work.", "--agent 'work'"]);
    assert_eq!(document["file"]["agents"]["work"]["allowlist"][0]["pattern"], "/usr/bin/jq");
    // The other name of the command.
    let removed = openclaw(&home, &["exec-approvals", "allowlist", "remove", "~/bin/rg", "--json"]).await;
    let left = json_of(&removed)["file"]["agents"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(left, ["work"]);
}

#[tokio::test]
async fn a_profile_begins_a_file_of_its_own_with_the_rules_at_home() {
    let home = gateway().prepare().unwrap();
    let rules = r#"{"version":1,"defaults":{"ask":"always"},"agents":{"*":{"allowlist":["/usr/bin/jq"]}}}"#;
    std::fs::write(path(&home), rules).unwrap();
    let dev = async |args: &[&str]| {
        let mut command = home.command();
        command.env_remove("OPENCLAW_STATE_DIR").args(["--dev", "approvals"]).args(args).arg("--json");
        json_of(&Ended::of(command).await)
    };
    let own = home.home().join(".openclaw-dev/exec-approvals.json");
    assert_eq!(dev(&["get"]).await["path"], json!(path(&home)));
    assert!(!own.exists(), "reading makes no file");
    let patterns = |answer: &Value| {
        let entries = answer["file"]["agents"]["*"]["allowlist"].as_array().unwrap().clone();
        entries.iter().map(|entry| entry["pattern"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let added = dev(&["allowlist", "add", "/usr/bin/uptime"]).await;
    assert_eq!((&added["path"], &added["file"]["defaults"]), (&json!(own), &json!({"ask": "always"})));
    assert_eq!(patterns(&added), ["/usr/bin/jq", "/usr/bin/uptime"]);
    assert_eq!(patterns(&dev(&["allowlist", "remove", "/usr/bin/jq"]).await), ["/usr/bin/uptime"]);
    assert_eq!(std::fs::read_to_string(path(&home)).unwrap(), rules, "it is the main gateway's");
}

#[tokio::test]
async fn a_whole_file_is_put_in_place_and_the_token_stays() {
    let home = gateway().prepare().unwrap();
    let was = json!({"version": 1, "socket": {"path": "/s", "token": "secret"}, "other": {"kept": true}});
    std::fs::write(path(&home), was.to_string()).unwrap();
    let shown = json_of(&approvals(&home, &["get", "--json"]).await);
    assert_eq!(shown["file"]["socket"], json!({"path": "/s"}));

    let new = home.home().join("new.json5");
    std::fs::write(&new, "{version: 1, defaults: {ask: 'always'}, agents: {main: {allowlist: ['/bin/x']}}}")
        .unwrap();
    let set = json_of(&approvals(&home, &["set", "--file", new.to_str().unwrap(), "--json"]).await);
    assert!(!set.to_string().contains("secret"), "{set}");
    assert_eq!(on_disk(&home)["socket"], was["socket"]);
    assert_eq!(on_disk(&home)["defaults"], json!({"ask": "always"}));
    assert!(on_disk(&home)["agents"]["main"]["allowlist"][0]["id"].is_string());

    // Output of `get` can be given back.
    let same = set_from_stdin(&home, &[], &set["file"].to_string()).await;
    assert_eq!(json_of(&same), set);

    let before = std::fs::read(path(&home)).unwrap();
    let whole_answer = set_from_stdin(&home, &[], &set.to_string()).await;
    whole_answer.failed(&["standard input is no approvals file", "value of \"file\" alone"]);
    set_from_stdin(&home, &[], "{").await.failed(&["Failed to parse approvals JSON"]);
    approvals(&home, &["set"]).await.failed(&["Provide --file <path> or --stdin."]);
    approvals(&home, &["set", "--file", "/none"]).await.failed(&["/none can't be read"]);
    approvals(&home, &["set", "--file", "/none", "--stdin"]).await.failed(&["--stdin"]);
    approvals(&home, &["allowlist", "add", " "]).await.failed(&["Pattern required."]);
    assert_eq!(std::fs::read(path(&home)).unwrap(), before, "nothing is written");
}

#[tokio::test]
async fn an_invalid_file_is_named_and_left_as_it_is() {
    let home = gateway().config(json!({"no": "such key"})).prepare().unwrap();
    for text in ["", "{ oops", r#"{"version": 2}"#] {
        std::fs::write(path(&home), text).unwrap();
        for args in [&["get"][..], &["allowlist", "add", "/bin/x"], &["allowlist", "remove", "/bin/x"]] {
            let ended = approvals(&home, args).await;
            ended.failed(&["exec-approvals.json is invalid", "Nothing was changed", "move the file away"]);
        }
        set_from_stdin(&home, &[], r#"{"version": 1}"#).await.failed(&["is invalid"]);
        assert_eq!(std::fs::read_to_string(path(&home)).unwrap(), text);
    }
}

#[tokio::test]
async fn a_node_and_an_address_without_gateway_are_refused() {
    let home = gateway().prepare().unwrap();
    approvals(&home, &["get", "--node", "phone"]).await.failed(&["node \"phone\"", "no nodes yet"]);
    let added = approvals(&home, &["allowlist", "add", "/bin/x", "--node", "phone", "--gateway"]).await;
    added.failed(&["no nodes yet"]);
    approvals(&home, &["get", "--url", "ws://127.0.0.1:1"]).await.failed(&["--url needs --gateway"]);
    approvals(&home, &["get", "--gateway"]).await.failed(&["gateway"]);
    assert!(!path(&home).exists());
}

#[tokio::test]
async fn a_running_gateway_is_asked_for_its_own_file() {
    let gateway = gateway().start().await.unwrap();
    std::fs::write(path(&gateway), r#"{"version": 1, "socket": {"path": "/s", "token": "secret"}}"#).unwrap();
    let shown = approvals(&gateway, &["get", "--gateway"]).await;
    assert!(said(&shown).starts_with("Showing gateway approvals.\n\nApprovals\n"), "{shown:?}");
    assert!(shown.out.contains("│ Target    │ gateway "), "{shown:?}");

    let added = json_of(&approvals(&gateway, &["allowlist", "add", "/bin/x", "--gateway", "--json"]).await);
    assert!(!added.to_string().contains("secret"), "{added}");
    assert_eq!(
        on_disk(&gateway)["agents"]["*"]["allowlist"][0],
        added["file"]["agents"]["*"]["allowlist"][0]
    );
    assert_eq!(on_disk(&gateway)["socket"]["token"], "secret");
    // Both ways see the same file.
    assert_eq!(json_of(&approvals(&gateway, &["get", "--json"]).await), added);
    let again = approvals(&gateway, &["allowlist", "add", "/bin/x", "--gateway"]).await;
    assert_eq!(said(&again), "Already allowlisted.");

    let set =
        set_from_stdin(&gateway, &["--gateway"], r#"{"version": 1, "defaults": {"ask": "always"}}"#).await;
    assert_eq!(json_of(&set)["file"]["defaults"], json!({"ask": "always"}));
    assert_eq!(on_disk(&gateway)["socket"]["token"], "secret");
    let gone = approvals(&gateway, &["allowlist", "remove", "/bin/x", "--gateway"]).await;
    assert_eq!(said(&gone), "Pattern not found.");

    std::fs::write(path(&gateway), "{ oops").unwrap();
    let broken = approvals(&gateway, &["allowlist", "add", "/bin/y", "--gateway"]).await;
    broken.failed(&["exec-approvals.json is invalid"]);
    assert_eq!(std::fs::read_to_string(path(&gateway)).unwrap(), "{ oops");
}

#[tokio::test]
async fn a_misspelt_setting_is_named_and_refused() {
    let home = gateway().prepare().unwrap();
    for (text, says) in [
        (
            r#"{"version": 1, "defaults": {"securty": "deny"}}"#,
            "\"defaults.securty\" is no setting; did you mean security?",
        ),
        (
            r#"{"version": 1, "agents": {"main": {"Ask": "always"}}}"#,
            "\"agents.main.Ask\" is no setting; did you mean ask?",
        ),
    ] {
        set_from_stdin(&home, &[], text).await.failed(&[says]);
        std::fs::write(path(&home), text).unwrap();
        approvals(&home, &["get"]).await.failed(&[says]);
        let doctor = openclaw(&home, &["doctor"]).await;
        assert!(doctor.out.contains(says), "{doctor:?}");
        std::fs::remove_file(path(&home)).unwrap();
    }
    let text = r#"{"version": 1, "agents": {"main": {"ask": "always", "colour": 1}}}"#;
    let set = set_from_stdin(&home, &[], text).await;
    assert!(
        set.err.contains("these fields are no settings of this version and do nothing: agents.main.colour"),
        "{set:?}"
    );
    let shown = approvals(&home, &["get"]).await;
    assert!(shown.out.contains("do nothing: agents.main.colour."), "{shown:?}");
    assert!(shown.out.contains("Settings of agents") && shown.out.contains("ask=always"), "{shown:?}");
}

#[tokio::test]
async fn a_gateway_warns_of_rules_that_nobody_is_held_to_and_many_may_add_at_once() {
    let mut gateway = gateway().prepare().unwrap();
    std::fs::write(path(&gateway), r#"{"version": 1, "defaults": {"security": "deny"}}"#).unwrap();
    gateway.start().await.unwrap();
    gateway.logged("exec-approvals.json: The rules hold only with tools.exec.host=gateway").await.unwrap();

    let adding: Vec<_> = (0..6)
        .map(|n| {
            let mut command = gateway.command();
            command.args(["approvals", "allowlist", "add", &format!("/opt/{n}"), "--gateway", "--json"]);
            command.env("OPENCLAW_GATEWAY_PORT", gateway.port().to_string());
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in adding {
        let ended = child.wait_with_output().await.unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    }
    assert_eq!(on_disk(&gateway)["agents"]["*"]["allowlist"].as_array().unwrap().len(), 6);
    // Nothing is left behind by that.
    assert!(path(&gateway).with_file_name("exec-approvals.json.lock").exists());
    let doctor = openclaw(&gateway, &["doctor"]).await;
    assert!(!doctor.out.contains("Left behind"), "{doctor:?}");
}
