//! A gateway that nobody asks anything.

use std::fs;
use std::time::{Duration, Instant};

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{DEADLINE, GatewayUnderTest};

use crate::gateway;
use crate::support::conversation::turn;

/// Long enough to tell looks twice a second from none.
const WINDOW: Duration = Duration::from_secs(3);
/// Wake-ups in a window that something else may be the reason of, such as a thread that ends after long idleness.
const FEW: u64 = 2;

/// Counts how often threads of the gateway were woken so far.
fn wake_ups(gateway: &GatewayUnderTest) -> u64 {
    let threads = fs::read_dir(format!("/proc/{}/task", gateway.pid().unwrap())).unwrap();
    let of_thread = |status: String| -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
        line.trim().parse().unwrap()
    };
    // A thread may end meanwhile.
    threads
        .filter_map(|thread| fs::read_to_string(thread.unwrap().path().join("status")).ok())
        .map(of_thread)
        .sum()
}

#[tokio::test]
async fn a_gateway_at_rest_is_not_woken_and_still_hears_of_edits() {
    let model = ModelServer::answering(|_| Reply::text("hello")).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    // From now on the skills of a workspace are kept as well.
    turn(&mut client, "main", "hello", "run-1").await;
    let deadline = Instant::now() + DEADLINE;
    loop {
        let before = wake_ups(&gateway);
        // The measurement is that nothing happens in this time; there is no event to wait for.
        tokio::time::sleep(WINDOW).await;
        let woken = wake_ups(&gateway).saturating_sub(before);
        if woken <= FEW {
            break;
        }
        assert!(Instant::now() < deadline, "woken {woken} times in {WINDOW:?}, and never less");
    }
    let path = gateway.state_dir().join("openclaw.json");
    let mut config: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    config["messages"]["queue"]["mode"] = "steer".into();
    fs::write(&path, config.to_string()).unwrap();
    gateway.logged("config change applied: messages.queue.mode").await.unwrap();
}
