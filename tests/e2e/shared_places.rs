//! Places that others may write to: what another user has put there is not used, and what is ours is closed to them.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use openclaw_testkit::GatewayUnderTest;
use serde_json::json;

use crate::command::{Ended, openclaw};
use crate::gateway;

/// Another user's number. Giving something away takes root; elsewhere that part of a test is passed over.
const SOMEBODY: u32 = 65_534;

fn open_to_all(dir: &Path) {
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o1777)).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

/// A directory like `/tmp`, and a file of the owner's.
fn shared_dir(gateway: &GatewayUnderTest) -> (PathBuf, PathBuf) {
    let shared = gateway.home().join("shared");
    std::fs::create_dir(&shared).unwrap();
    open_to_all(&shared);
    let precious = gateway.home().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    (shared, precious)
}

async fn start_with_temp(gateway: &GatewayUnderTest, temp: &Path) -> Ended {
    let mut command = gateway.command();
    command.args(["gateway", "run", "--port", "0"]).env("TMPDIR", temp);
    Ended::of(command).await
}

#[tokio::test]
async fn a_lock_that_leads_to_a_file_of_the_owners_is_refused_and_the_file_stays_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let temp = home.path().join("tmp");
    std::fs::create_dir(&temp).unwrap();
    open_to_all(&temp);
    let mut gateway = gateway().env("TMPDIR", temp.display().to_string()).start().await.unwrap();
    let lock_dir = std::fs::read_dir(&temp).unwrap().next().unwrap().unwrap().path();
    assert_eq!(mode(&lock_dir), 0o700);
    let lock = std::fs::read_dir(&lock_dir).unwrap().next().unwrap().unwrap().path();
    assert_eq!(mode(&lock), 0o600);
    gateway.terminate().await.unwrap();
    let precious = home.path().join("precious");
    std::fs::write(&precious, "precious").unwrap();

    symlink(&precious, &lock).unwrap();
    let refused = start_with_temp(&gateway, &temp).await;
    refused.failed(&[&lock.display().to_string(), "is a symbolic link", "remove it", "TMPDIR"]);
    std::fs::remove_file(&lock).unwrap();
    std::fs::hard_link(&precious, &lock).unwrap();
    start_with_temp(&gateway, &temp).await.failed(&["has 2 hard links", "remove it"]);
    // Asking for the state of things looks there too.
    assert_ne!(openclaw(&gateway, &["doctor", "--non-interactive"]).await.code, None);
    std::fs::remove_file(&lock).unwrap();

    if chown(&lock_dir, Some(SOMEBODY), None).is_ok() {
        let refused = start_with_temp(&gateway, &temp).await;
        refused.failed(&[&lock_dir.display().to_string(), "belongs to user 65534", "TMPDIR"]);
        std::fs::remove_dir(&lock_dir).unwrap();
        symlink(home.path(), &lock_dir).unwrap();
        std::os::unix::fs::lchown(&lock_dir, Some(SOMEBODY), None).unwrap();
        start_with_temp(&gateway, &temp).await.failed(&["belongs to user 65534", "TMPDIR"]);
        std::fs::remove_file(&lock_dir).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    let names = || std::fs::read_dir(home.path()).unwrap().count();
    assert_eq!(names(), 2, "nothing was made where a link led to");
    gateway.start().await.unwrap();
}

#[tokio::test]
async fn a_log_file_in_a_shared_directory_that_leads_elsewhere_is_not_written() {
    let home = tempfile::tempdir().unwrap();
    let log = home.path().join("shared/gateway.log");
    let setup = gateway().config(json!({"logging": {"file": log}}));
    let mut gateway = setup.prepare().unwrap();
    std::fs::create_dir(home.path().join("shared")).unwrap();
    open_to_all(&home.path().join("shared"));
    let precious = home.path().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    symlink(&precious, &log).unwrap();
    gateway.start().await.unwrap();
    gateway.logged("the log file cannot be written").await.unwrap();
    gateway.logged("is a symbolic link").await.unwrap();
    gateway.terminate().await.unwrap();
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    std::fs::remove_file(&log).unwrap();
    gateway.start().await.unwrap();
    gateway.terminate().await.unwrap();
    assert_eq!(mode(&log), 0o600);
}

#[tokio::test]
async fn a_state_directory_that_others_may_write_to_is_closed_and_said() {
    let mut gateway = gateway().prepare().unwrap();
    let state = gateway.state_dir();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o777)).unwrap();
    gateway.start().await.unwrap();
    assert_eq!(mode(&state), 0o700);
    gateway.logged(&format!("others could write to {}", state.display())).await.unwrap();
    gateway.terminate().await.unwrap();
    gateway.start().await.unwrap();
    assert_eq!(gateway.log().matches("others could write to").count(), 1, "only when it is so");
    gateway.terminate().await.unwrap();
}

#[tokio::test]
async fn a_state_directory_of_another_user_is_named() {
    let gateway = gateway().prepare().unwrap();
    let (shared, precious) = shared_dir(&gateway);
    let state = gateway.home().join("theirs");
    std::fs::create_dir(&state).unwrap();
    if chown(&state, Some(SOMEBODY), None).is_err() {
        return;
    }
    let start_in = |state: PathBuf| {
        let mut command = gateway.command();
        command
            .args(["gateway", "run", "--port", "0"])
            .env("OPENCLAW_CONFIG_PATH", gateway.state_dir().join("openclaw.json"))
            .env("OPENCLAW_STATE_DIR", state);
        Ended::of(command)
    };
    start_in(state.clone()).await.failed(&["belongs to user 65534", "OPENCLAW_STATE_DIR"]);
    assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0, "something was made in it");

    // One of ours that was open to others, who made use of it.
    let ours = shared.join("ours");
    std::fs::create_dir(&ours).unwrap();
    std::fs::set_permissions(&ours, std::fs::Permissions::from_mode(0o777)).unwrap();
    let planted = ours.join("gateway.sqlite");
    symlink(&precious, &planted).unwrap();
    std::os::unix::fs::lchown(&planted, Some(SOMEBODY), None).unwrap();
    start_in(ours).await.failed(&[&planted.display().to_string(), "belongs to user 65534"]);
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
}
