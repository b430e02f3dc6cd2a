//! Places where a gateway can't start: it says why, exits with 1 and disturbs nobody.

use std::net::TcpListener;
use std::path::Path;

use nix::fcntl::{FcntlArg, fcntl};
use openclaw_testkit::model_server::{ModelServer, Reply};
use serde_json::json;

use crate::gateway;
use crate::support::command::{Ended, openclaw};
use crate::support::conversation::turn;
use crate::support::mount::Mount;

#[tokio::test]
async fn a_port_in_use_is_named() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let gateway = gateway().prepare().unwrap();
    let refused = openclaw(&gateway, &["gateway", "run", "--port", &port.to_string()]).await;
    let holder = format!("port {port} is held by pid {}", std::process::id());
    refused.failed(&[&holder, "which is not a gateway", "another port"]);
    assert!(!gateway.state_dir().join("gateway.lock").exists(), "the lock was left behind");
}

#[tokio::test]
async fn a_port_of_another_gateway_is_named() {
    let first = gateway().start().await.unwrap();
    let port = first.port();
    let second = gateway().prepare().unwrap();
    let refused = openclaw(&second, &["gateway", "run", "--port", &port.to_string()]).await;
    refused.failed(&[&format!("already listening on ws://127.0.0.1:{port}"), "--force"]);
}

/// The lock is the one that SQLite takes to read.
#[tokio::test]
async fn a_program_that_has_the_database_is_spoken_of() {
    let mut gateway = gateway().start().await.unwrap();
    gateway.terminate().await.unwrap();
    let database = gateway.state_dir().join("gateway.sqlite");
    let file = std::fs::File::options().read(true).write(true).open(&database).unwrap();
    let lock = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0x4000_0000,
        l_len: 512,
        l_pid: 0,
    };
    fcntl(&file, FcntlArg::F_SETLK(&lock)).unwrap();
    let refused = openclaw(&gateway, &["gateway", "run", "--port", "0"]).await;
    let who = format!("`fuser {}` names it", database.display());
    refused.failed(&["another program has it open", &who, "then start the gateway again"]);
    drop(file);
    gateway.start().await.unwrap();
}

#[tokio::test]
async fn a_second_gateway_in_a_directory_is_told_who_holds_it() {
    let model = ModelServer::answering(|_| Reply::text("here")).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let lock = std::fs::read(gateway.state_dir().join("gateway.lock")).unwrap();

    let second = openclaw(&gateway, &["gateway", "run", "--port", "0"]);
    // The first one works while the second one waits for it to go away.
    let (second, answer) = tokio::join!(second, turn(&mut client, "main", "still there?", "run-1"));
    second.failed(&[&format!("gateway already running (pid {})", gateway.pid().unwrap()), "gateway.lock"]);
    assert_eq!(answer, "here");
    assert_eq!(turn(&mut client, "main", "and now?", "run-2").await, "here");
    assert_eq!(std::fs::read(gateway.state_dir().join("gateway.lock")).unwrap(), lock);
}

#[tokio::test]
async fn a_file_in_place_of_the_state_directory_is_named() {
    let gateway = gateway().prepare().unwrap();
    let file = gateway.home().join("file");
    std::fs::write(&file, "mine").unwrap();
    for state_dir in [file.clone(), file.join("below")] {
        let refused = start_in(&gateway, &state_dir).await;
        refused.failed(&["the state directory", &state_dir.display().to_string(), "OPENCLAW_STATE_DIR"]);
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[tokio::test]
async fn a_state_directory_that_cannot_be_written_is_named() {
    let gateway = gateway().prepare().unwrap();
    let dir = gateway.home().join("read-only");
    std::fs::create_dir(&dir).unwrap();
    let Some(_mount) = Mount::read_only(&dir) else { return };
    let refused = start_in(&gateway, &dir).await;
    refused.failed(&["the state directory", &dir.display().to_string(), "Read-only file system"]);
    assert!(!refused.err.contains("gateway stop"), "there is no gateway to stop:\n{}", refused.err);
}

/// Starts a gateway with the config of this one and another state directory.
async fn start_in(gateway: &openclaw_testkit::GatewayUnderTest, state_dir: &Path) -> Ended {
    let mut command = gateway.command();
    command
        .args(["gateway", "run", "--port", "0"])
        .env("OPENCLAW_CONFIG_PATH", gateway.state_dir().join("openclaw.json"))
        .env("OPENCLAW_STATE_DIR", state_dir);
    Ended::of(command).await
}

#[tokio::test]
async fn a_start_without_config_says_how_to_make_one() {
    let gateway = gateway().whole_config(json!(null)).prepare().unwrap();
    let refused = openclaw(&gateway, &["gateway", "run", "--port", "0"]).await;
    refused.failed(&["Missing config", "openclaw setup", "--allow-unconfigured"]);
}
