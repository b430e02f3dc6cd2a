//! Places that others may write to: what another user has put there is not used, and what is ours is closed to them.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use openclaw_testkit::GatewayUnderTest;
use serde_json::json;

use crate::gateway;
use crate::support::command::{Ended, openclaw};

/// User id of somebody else: nobody who runs these tests has it.
const SOMEBODY: u32 = 65_533;

/// Gives a file, a directory or a link to another user. `false`, said loudly: only root can, and that part of the test is passed over.
fn give_away(path: &Path) -> bool {
    let given = std::os::unix::fs::lchown(path, Some(SOMEBODY), None).is_ok();
    if !given {
        // Past the capture of what tests print: who runs them sees it.
        let _ =
            writeln!(std::io::stderr(), "passed over: only root can give {} to another user", path.display());
    }
    given
}

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

    if give_away(&lock_dir) {
        let refused = start_with_temp(&gateway, &temp).await;
        refused.failed(&[&lock_dir.display().to_string(), "belongs to user 65533", "TMPDIR"]);
        std::fs::remove_dir(&lock_dir).unwrap();
        symlink(home.path(), &lock_dir).unwrap();
        assert!(give_away(&lock_dir));
        start_with_temp(&gateway, &temp).await.failed(&["belongs to user 65533", "TMPDIR"]);
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
    if !give_away(&state) {
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
    start_in(state.clone()).await.failed(&["belongs to user 65533", "OPENCLAW_STATE_DIR"]);
    assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0, "something was made in it");

    // A directory of ours that was open to others, who made use of it.
    let ours = shared.join("ours");
    std::fs::create_dir(&ours).unwrap();
    std::fs::set_permissions(&ours, std::fs::Permissions::from_mode(0o777)).unwrap();
    let planted = ours.join("gateway.sqlite");
    symlink(&precious, &planted).unwrap();
    assert!(give_away(&planted));
    start_in(ours).await.failed(&[&planted.display().to_string(), "belongs to user 65533"]);
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
}

/// Plants a file, as somebody else could in a directory that is open to all, or a link to a place
/// of their own.
fn plant(path: &Path, content: &str) -> bool {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(path);
    std::fs::write(path, content).unwrap();
    give_away(path)
}

async fn try_to_start(gateway: &GatewayUnderTest) -> Ended {
    openclaw(gateway, &["gateway", "run", "--port", "0"]).await
}

#[tokio::test]
async fn what_another_user_put_there_is_refused_by_every_start_not_only_the_first() {
    for (name, content) in [
        ("openclaw.json", "{gateway: {mode: 'local', auth: {token: 'theirs'}}}"),
        (".env", "OPENCLAW_GATEWAY_TOKEN=theirs"),
        ("devices/paired.json", "{}"),
        ("identity/device.json", "{}"),
        ("agents/main/agent/auth-profiles.json", r#"{"version":1,"profiles":{}}"#),
        ("agents/main/agent/models.json", r#"{"providers":{}}"#),
    ] {
        let gateway = gateway().prepare().unwrap();
        let state = gateway.state_dir();
        let planted = state.join(name);
        if !plant(&planted, content) {
            return;
        }
        for dir in planted.ancestors().skip(1).take_while(|dir| dir.starts_with(&state)) {
            std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        for start in 1..=3 {
            let refused = try_to_start(&gateway).await;
            refused.failed(&[&planted.display().to_string(), "belongs to user 65533"]);
            if start == 1 {
                // Closing the directories makes nobody's file ours.
                openclaw(&gateway, &["doctor", "--fix", "--non-interactive"]).await;
            }
        }
        let doctor = openclaw(&gateway, &["doctor", "--non-interactive"]).await;
        assert!(doctor.out.contains(&planted.display().to_string()), "{name}: {doctor:?}");
    }
}

#[tokio::test]
async fn sessions_and_transcripts_of_another_user_are_not_read() {
    let gateway = gateway().prepare().unwrap();
    let planted = gateway.state_dir().join("agents/main/sessions/sessions.json");
    if plant(&planted, r#"{"agent:main:main":{"sessionId":"theirs","updatedAt":1}}"#) {
        let sessions = openclaw(&gateway, &["sessions"]).await;
        assert!(
            sessions.err.contains("belongs to user 65533") && !sessions.out.contains("theirs"),
            "{sessions:?}"
        );
    }
}

#[tokio::test]
async fn credentials_are_not_written_through_the_link_of_another_user() {
    let gateway = gateway().prepare().unwrap();
    let (_, precious) = shared_dir(&gateway);
    let agent_dir = gateway.state_dir().join("agents/main/agent");
    std::fs::create_dir_all(&agent_dir).unwrap();
    let link = agent_dir.join("auth-profiles.json");
    symlink(&precious, &link).unwrap();
    if give_away(&link) {
        let order = ["models", "auth", "order", "set", "--provider", "openai", "openai:x"];
        openclaw(&gateway, &order).await.failed(&["auth-profiles.json belongs to user 65533"]);
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    }
}

#[tokio::test]
async fn a_command_that_another_users_config_names_is_not_run() {
    let gateway = gateway().prepare().unwrap();
    let ran = gateway.home().join("ran");
    let key = format!("!id > {}", ran.display());
    let config = json!({
        "models": {"providers": {"p": {"baseUrl": "http://127.0.0.1:9/v1", "apiKey": key, "api": "openai-completions",
            "models": [{"id": "m", "name": "m"}]}}},
        "agents": {"defaults": {"model": {"primary": "p/m"}}},
    });
    let mine = gateway.state_dir().join("openclaw.json");
    if !plant(&mine, &config.to_string()) {
        return;
    }
    let turn = openclaw(&gateway, &["agent", "--local", "-m", "hi", "--to", "+1"]).await;
    turn.failed(&["belongs to user 65533"]);
    assert!(!ran.exists());
}

#[tokio::test]
async fn directories_of_the_state_that_another_user_linked_elsewhere_are_refused() {
    for name in ["devices", "identity", "agents/main/agent", "agents/main/sessions", "logs"] {
        let mut gateway = gateway().prepare().unwrap();
        let place = gateway.state_dir().join(name);
        let theirs = gateway.home().join("elsewhere");
        std::fs::create_dir(&theirs).unwrap();
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        let _ = std::fs::remove_dir_all(&place);
        symlink(&theirs, &place).unwrap();
        // The owner's own link is how the owner wants it.
        gateway.start().await.unwrap();
        gateway.terminate().await.unwrap();
        if !give_away(&place) {
            return;
        }
        let refused = try_to_start(&gateway).await;
        refused.failed(&[&place.display().to_string(), "belongs to user 65533"]);
    }
}

#[tokio::test]
async fn a_start_waits_for_no_pipe() {
    let mut gateway = gateway().prepare().unwrap();
    let files = ["subagents/runs.json", "sandbox/containers.json", "sandbox/local.json"];
    for name in files {
        let pipe = gateway.state_dir().join(name);
        std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    }
    gateway.start().await.unwrap();
    gateway.logged("the list of sub-agents can't be read").await.unwrap();
    let kept = std::fs::read_dir(gateway.state_dir().join("subagents")).unwrap();
    let mut kept = kept.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert!(kept.any(|name| name.starts_with("runs.json.damaged-")));
    assert!(gateway.terminate().await.unwrap().success());
}

/// Reading a pipe would wait for its writer, for good.
#[tokio::test]
async fn a_pipe_in_the_place_of_a_file_is_named_and_nobody_waits_for_it() {
    for (name, command) in [
        ("openclaw.json", &["status"][..]),
        ("devices/paired.json", &["devices", "list"]),
        ("devices/pending.json", &["devices", "list"]),
        ("identity/device.json", &["health"]),
        ("identity/device-auth.json", &["health"]),
        ("agents/main/agent/auth-profiles.json", &["models", "status"]),
        ("agents/main/agent/models.json", &["models", "list"]),
        ("agents/main/sessions/sessions.json.journal.1", &["sessions"]),
    ] {
        let gateway = gateway().prepare().unwrap();
        let pipe = gateway.state_dir().join(name);
        std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&pipe);
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let ended = openclaw(&gateway, command).await;
        assert!(ended.code.is_some() && !ended.err.contains("--fix` does it"), "{name}: {ended:?}");
        let doctor = openclaw(&gateway, &["doctor", "--non-interactive"]).await;
        assert!(doctor.out.contains(&pipe.display().to_string()), "{name}: {doctor:?}");
        assert!(doctor.out.contains("pipe"), "{name}: {doctor:?}");
    }
}
