//! Remains of commands: none, once the gateway has stopped (acceptance of the tools, spec
//! `tools.md` §3).

use openclaw_testkit::GatewayUnderTest;
use serde_json::{Value, json};

use crate::gateway;
use crate::support::processes::{until, with_argument};
use crate::support::told_calls::{Caller, model};

/// Name of each case, the number of its processes before the gateway stops, and a command that has
/// `WORD` as an argument of each process.
const COMMANDS: [(&str, usize, &str, bool); 7] = [
    ("it ignores signals", 2, "trap '' HUP INT QUIT TERM; sleep WORD & sleep WORD & wait", true),
    (
        "they ignore signals",
        2,
        "sh -c 'trap \"\" HUP INT QUIT TERM; sleep WORD & sleep WORD; :' & wait",
        true,
    ),
    ("nohup", 1, "nohup sleep WORD >/dev/null 2>&1 </dev/null &", false),
    ("a child of nobody", 1, "( ( nohup sleep WORD & ) & ) >/dev/null 2>&1 </dev/null", false),
    ("a thousand", 1_000, "n=0; while [ $n -lt 1000 ]; do sleep WORD & n=$((n+1)); done; wait", true),
    // A fork bomb that ends by itself: each makes two more.
    ("a bomb", 256, "f() { [ $1 -gt 0 ] && { f $(($1-1)) & f $(($1-1)) & }; sleep WORD; }; f 8; wait", true),
    // The command makes new processes as long as it lives.
    ("without end", 50, "trap '' TERM; while :; do sleep WORD & sleep 0.01; done", true),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    InOrder,
    Killed,
}

async fn run(gateway: &mut GatewayUnderTest, row: usize, pty: bool, stop: Stop) {
    let (name, count, command, is_background) = COMMANDS[row];
    let at = format!("{name}, pty {pty}, {stop:?}");
    // No other processes have this argument.
    let word = format!("97{}.{row}{}{}", std::process::id(), u8::from(pty), u8::from(stop == Stop::Killed));
    let command = command.replace("WORD", &word);
    let mut caller = Caller::new(gateway.client().await.unwrap());
    let args = json!({"command": command, "pty": pty});
    if is_background {
        caller.start("main", args).await;
    } else {
        assert_eq!(caller.call("main", "exec", args).await, "(no output)", "{at}");
    }
    until(&format!("{at}: the start"), || with_argument(&word) >= count).await;
    // A client would be waited for.
    drop(caller);
    match stop {
        Stop::InOrder => assert!(gateway.terminate().await.unwrap().success(), "{at}"),
        Stop::Killed => gateway.kill().await.unwrap(),
    }
    until(&format!("{at}: the end"), || with_argument(&word) == 0).await;
}

#[tokio::test]
async fn no_child_of_a_command_outlives_the_gateway() {
    let model = model().await;
    let config = json!({"tools": {"exec": {"notifyOnExit": false}}});
    let mut gateway = gateway().fake_model(&model.v1()).config(config).prepare().unwrap();
    for (row, (.., is_background)) in COMMANDS.iter().enumerate() {
        for pty in [false, true] {
            // Processes that a command in a terminal leaves end with the command.
            if pty && !is_background {
                continue;
            }
            for stop in [Stop::InOrder, Stop::Killed] {
                gateway.start().await.unwrap();
                run(&mut gateway, row, pty, stop).await;
            }
        }
    }
}

/// The one way out (`docs/compatibility.md`): a program in a session of its own stays, and is found by whoever wants it ended.
#[tokio::test]
async fn what_begins_a_session_of_its_own_is_the_owners_to_end() {
    let model = model().await;
    let mut gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    let mut caller = Caller::new(gateway.client().await.unwrap());
    let args: Value = json!({"command": "setsid sh -c 'echo $$ > pid; exec sleep 10000' >/dev/null 2>&1 </dev/null & \
                                         until [ -s pid ]; do sleep 0.01; done; cat pid"});
    let pid = caller.call("main", "exec", args).await.trim().parse().unwrap();
    let pid = nix::unistd::Pid::from_raw(pid);
    assert!(gateway.terminate().await.unwrap().success());
    nix::sys::signal::kill(pid, nix::sys::signal::SIGKILL).expect("it stays");
}
