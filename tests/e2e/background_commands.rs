//! Commands in the background, through the real program: fed and watched by later calls, told of when they end, gone with the gateway.

use openclaw_testkit::model_server::{Captured, ModelServer, Reply};
use serde_json::{Value, json};

use crate::gateway;
use crate::support::conversation::{results, turn};

/// The id of the command that the first call started.
fn session(request: &Captured) -> String {
    let started = results(request).into_iter().next().unwrap_or_default();
    let id = started.split("(session ").nth(1).and_then(|rest| rest.split(',').next());
    id.unwrap_or_else(|| panic!("{started}")).to_owned()
}

#[tokio::test]
async fn a_model_feeds_a_command_and_reads_what_it_says() {
    // The process says `over` when it has heard a line: it is polled until then.
    let model = ModelServer::answering(|request: &Captured| {
        let process = |args: Value| {
            let mut args = args;
            args["sessionId"] = json!(session(request));
            Reply::tool(&format!("c{}", results(request).len()), "process", &args)
        };
        let said = results(request);
        match said.len() {
            0 => {
                let args = json!({"command": "read -r line; echo heard $line; exit 4", "background": true});
                Reply::tool("c0", "exec", &args)
            }
            1 => process(json!({"action": "write", "data": "hello\n"})),
            _ if said.last().is_some_and(|last| last.contains("exited with")) => Reply::text("done"),
            _ => process(json!({"action": "poll"})),
        }
    })
    .await;
    let config = json!({"tools": {"exec": {"notifyOnExit": false}}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "go", "run-1").await, "done");
    let said = results(model.requests().last().unwrap());
    assert!(said[1].starts_with("Wrote 6 bytes to session "), "{said:?}");
    let polled = said[2..].concat();
    assert!(polled.contains("heard hello") && polled.ends_with("Process exited with code 4."), "{said:?}");
}

#[tokio::test]
async fn an_agent_is_told_when_its_command_ends() {
    let model = ModelServer::answering(|request: &Captured| match request.last_user_text() {
        text if text.contains("Exec completed (") => Reply::text("it is built"),
        _ if request.ends_with_tool_result() => Reply::text("building"),
        _ => {
            let command = "until [ -e go ]; do sleep 0.01; done; echo  all   built";
            Reply::tool("c0", "exec", &json!({"command": command, "background": true}))
        }
    })
    .await;
    let config = json!({"agents": {"defaults": {"heartbeat": {"every": "1h"}}}});
    let gateway = gateway().fake_model(&model.v1()).config(config).start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    assert_eq!(turn(&mut client, "main", "build it", "run-1").await, "building");
    std::fs::write(gateway.state_dir().join("workspace/go"), "").unwrap();
    // There is no chat to say it in here.
    client.event("heartbeat", |event| event["preview"] == "it is built").await.unwrap();
    let told = model.requests().pop().unwrap().last_user_text();
    assert!(told.starts_with("System: [") && told.contains(", code 0) :: all built"), "{told}");
}

#[tokio::test]
async fn a_command_in_the_background_ends_with_the_gateway() {
    for pty in [false, true] {
        let command = "trap '' HUP TERM; echo $$ > pid; sleep 10000 & wait";
        let args = json!({"command": command, "background": true, "pty": pty});
        let model = ModelServer::queue([Reply::tool("c0", "exec", &args), Reply::text("running")]).await;
        let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
        let mut client = gateway.client().await.unwrap();
        assert_eq!(turn(&mut client, "main", "go", "run-1").await, "running");
        let path = gateway.state_dir().join("workspace/pid");
        let wait = async {
            loop {
                if let Some(pid) = std::fs::read_to_string(&path).ok().and_then(|pid| pid.trim().parse().ok())
                {
                    return pid;
                }
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let pid = tokio::time::timeout(openclaw_testkit::DEADLINE, wait).await.unwrap();
        gateway.kill().await.unwrap();
        let group = nix::unistd::Pid::from_raw(pid);
        let gone = async {
            while nix::sys::signal::kill(group, None).is_ok() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(openclaw_testkit::DEADLINE, gone).await.unwrap_or_else(|_| panic!("pty {pty}"));
    }
}
