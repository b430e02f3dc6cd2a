//! Pictures that a message names by their paths, through the real program: what the model is shown, and what it is not.

use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openclaw_testkit::model_server::Captured;
use serde_json::json;

use crate::support::conversation::turn;
use crate::support::pictures::{black, talk};

/// The base64 of the pictures in each message of a user.
fn shown(request: &Captured) -> Vec<Vec<String>> {
    let users = request.messages().iter().filter(|message| message["role"] == "user");
    users
        .map(|message| {
            let blocks = message["content"].as_array().into_iter().flatten();
            let urls = blocks.filter_map(|block| block["image_url"]["url"].as_str());
            urls.map(|url| url.split_once("base64,").unwrap().1.to_owned()).collect()
        })
        .collect()
}

fn encoded(width: u32) -> String {
    STANDARD.encode(black(width, 20))
}

fn named(directory: &Path, name: &str) -> String {
    directory.join(name).display().to_string()
}

/// The second turn sends what the first one sent, although the file is another one by then.
#[tokio::test]
async fn a_picture_that_is_named_is_shown_and_stays_as_it_was() {
    let (model, gateway) = talk(&["text", "image"], json!({})).await;
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("b c.png"), black(40, 20)).unwrap();
    let mut client = gateway.client().await.unwrap();
    let words = format!(
        "compare ./a.png, file://{}/b%20c.png and ./none.png; [Image: source: ./a.png]",
        elsewhere.path().display()
    );
    assert_eq!(turn(&mut client, "main", &words, "run-1").await, "done");
    std::fs::write(gateway.state_dir().join("workspace/a.png"), black(50, 20)).unwrap();
    assert_eq!(turn(&mut client, "main", "and now?", "run-2").await, "done");
    assert_eq!(turn(&mut client, "main", "and ./a.png?", "run-3").await, "done");

    let requests = model.requests();
    let first = vec![encoded(30), encoded(40)];
    assert_eq!(shown(&requests[0]), std::slice::from_ref(&first));
    assert_eq!(shown(&requests[1]), [first.clone(), vec![]]);
    assert_eq!(shown(&requests[2]), [first, vec![], vec![encoded(50)]]);
}

#[tokio::test]
async fn a_model_that_does_not_see_is_shown_none() {
    let (model, gateway) = talk(&["text"], json!({})).await;
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "look at ./a.png", "run-1").await, "done");
    assert!(!model.requests()[0].body.to_string().contains(&encoded(30)));
}

#[tokio::test]
async fn who_may_not_read_files_is_shown_none() {
    for (deny, expect) in [(json!(["read", "image"]), vec![]), (json!(["image"]), vec![encoded(30)])] {
        let (model, gateway) = talk(&["text", "image"], json!({"tools": {"deny": deny}})).await;
        let mut client = gateway.client().await.unwrap();
        assert_eq!(turn(&mut client, "main", "look at ./a.png", "run-1").await, "done");
        assert_eq!(shown(&model.requests()[0]), [expect], "{deny}");
    }
}

#[tokio::test]
async fn a_pipe_or_a_device_holds_nothing_up() {
    let (model, gateway) = talk(&["text", "image"], json!({})).await;
    let workspace = gateway.state_dir().join("workspace");
    let pipe = named(&workspace, "pipe.png");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink("/dev/zero", workspace.join("zero.png")).unwrap();
    let mut client = gateway.client().await.unwrap();
    let words = format!("look at {pipe} ./zero.png ./a.png");
    assert_eq!(turn(&mut client, "main", &words, "run-1").await, "done");
    assert_eq!(shown(&model.requests()[0]), [[encoded(30)]]);
}

#[tokio::test]
async fn a_sandboxed_session_is_shown_its_own_files_alone() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.png"), black(60, 20)).unwrap();
    let sandbox = json!({"agents": {"defaults": {"sandbox": {"backend": "local", "mode": "all", "workspaceAccess": "rw"}}}});
    let (model, gateway) = talk(&["text", "image"], sandbox).await;
    let secret = named(outside.path(), "secret.png");
    std::os::unix::fs::symlink(&secret, gateway.state_dir().join("workspace/link.png")).unwrap();
    let mut client = gateway.client().await.unwrap();
    let words = format!("look at {secret} ./link.png ../../{secret} /workspace/a.png");
    if !crate::support::sandbox::works(&gateway, &turn(&mut client, "main", &words, "run-1").await) {
        return;
    }
    assert_eq!(shown(&model.requests()[0]), [[encoded(30)]]);
}
