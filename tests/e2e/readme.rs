//! Promises of the README: its commands, its unit, its links.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use openclaw_testkit::telegram::{TelegramServer, private_message};
use openclaw_testkit::{DEADLINE, ReservedPort};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::timeout;

use crate::support::command::ok;
use crate::{gateway, program};

const README: &str = include_str!("../../README.md");

/// The block of a language that is the first below a heading.
fn block(heading: &str, language: &str) -> &'static str {
    let section = README.split(heading).nth(1).unwrap();
    section.split(&format!("```{language}\n")).nth(1).unwrap().split("```").next().unwrap()
}

#[tokio::test]
async fn five_commands_of_the_readme_put_a_bot_on_telegram() {
    let commands: Vec<&str> = block("### Put it on Telegram", "sh").lines().collect();
    assert_eq!(commands.len(), 5, "{commands:?}");
    let server = TelegramServer::start().await;
    let setup =
        gateway().whole_config(serde_json::Value::Null).env("OPENCLAW_TELEGRAM_API_ROOT", server.root());
    let mut gateway = setup.prepare().unwrap();
    let mut code = String::new();
    for command in commands {
        let line =
            command.split(" #").next().unwrap().replace("<token>", &server.token()).replace("<code>", &code);
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        if words == ["gateway"] {
            gateway.start().await.unwrap();
            server.push(private_message(5, "hi"));
            let told = server.nth_call("sendMessage", 1).await.params["text"].as_str().unwrap().to_owned();
            code = told.split("Pairing code: ").nth(1).unwrap().lines().next().unwrap().to_owned();
        } else {
            let out = ok(&gateway, &words).await;
            assert!(words[0] != "pairing" || out.contains("Approved telegram sender 5."), "{out}");
        }
    }
    let status = ok(&gateway, &["channels", "status", "--probe"]).await;
    assert!(status.contains("running") && status.contains("works"), "{status}");
}

/// The settings of a unit, by section and key.
fn unit() -> BTreeMap<(String, String), String> {
    let mut section = String::new();
    let mut found = BTreeMap::new();
    for line in block("### Run it in the background", "ini").lines().filter(|line| !line.is_empty()) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = name.to_owned();
        } else {
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{line}"));
            assert!(found.insert((section.clone(), key.to_owned()), value.to_owned()).is_none(), "{line}");
        }
    }
    found
}

#[tokio::test]
async fn the_unit_of_the_readme_runs_the_gateway_and_stops_it() {
    let unit = unit();
    let of = |section: &str, key: &str| unit[&(section.to_owned(), key.to_owned())].clone();
    assert_eq!(
        (of("Install", "WantedBy"), of("Service", "Restart")),
        ("default.target".to_owned(), "on-failure".to_owned())
    );
    // Limits of whole sandboxes need a control group of the gateway's own.
    assert_eq!(of("Service", "Delegate"), "yes");
    // The gateway needs less time to stop than the unit gives it.
    assert!(of("Service", "TimeoutStopSec").parse::<u32>().unwrap() > 20);

    let gateway = gateway().prepare().unwrap();
    let port = ReservedPort::any().unwrap();
    ok(&gateway, &["config", "set", "gateway.port", &port.number().unwrap().to_string()]).await;
    // Programs on this machine are no part of the test.
    std::fs::write(gateway.state_dir().join(".env"), "OPENCLAW_LOCAL_MODELS=off\n").unwrap();
    let bin = gateway.home().join(".local/bin");
    std::fs::create_dir_all(&bin).unwrap();
    symlink(program(), bin.join("openclaw")).unwrap();
    let line = of("Service", "ExecStart").replace("%h", gateway.home().to_str().unwrap());
    let mut words = line.split_whitespace();
    // A service has no variables of a shell.
    let mut child = tokio::process::Command::new(words.next().unwrap())
        .args(words)
        .env_clear()
        .env("HOME", gateway.home())
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let listens = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("listening on ws://") {
                return;
            }
        }
        panic!("it ended before it listened");
    };
    timeout(DEADLINE, listens).await.unwrap();
    kill(Pid::from_raw(child.id().unwrap().try_into().unwrap()), Signal::SIGTERM).unwrap();
    // The rest of what it says must not keep it.
    while lines.next_line().await.unwrap().is_some() {}
    let ended = timeout(DEADLINE, child.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0), "a stop is no failure, after which it would be started again");
}

#[test]
fn the_readme_links_to_every_page_and_to_nothing_that_is_not_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let links: Vec<&str> = README
        .split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap())
        .filter(|link| !link.contains("://"))
        .collect();
    for link in &links {
        assert!(root.join(link).exists(), "{link}");
    }
    for dir in ["docs", "docs/channels"] {
        for entry in std::fs::read_dir(root.join(dir)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let page = format!("{dir}/{name}");
            assert!(!name.ends_with(".md") || links.contains(&page.as_str()), "no link to {page}");
        }
    }
}
