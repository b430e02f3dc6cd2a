//! Signals at the moments in which a gateway does not listen yet, or no longer.

use std::time::Instant;

use nix::sys::signal::Signal;
use openclaw_testkit::{DEADLINE, GatewayUnderTest};
use serde_json::json;

use crate::gateway;

const LISTENING: &str = "listening on ws://";
const RESTARTING: &str = "received SIGUSR1; restarting";

/// Waits for the first moment at which this signal no longer ends the process: it is held back, or heard.
async fn survives(gateway: &GatewayUnderTest, signal: Signal) {
    let path = format!("/proc/{}/status", gateway.pid().unwrap());
    let deadline = Instant::now() + DEADLINE;
    loop {
        let status = std::fs::read_to_string(&path).unwrap();
        let has = |name: &str| {
            let mask = status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
            u64::from_str_radix(mask, 16).unwrap() & (1 << (signal as i32 - 1)) != 0
        };
        if has("SigBlk:") || has("SigCgt:") {
            return;
        }
        assert!(Instant::now() < deadline, "{signal} is never held back:\n{}", gateway.log());
        tokio::task::yield_now().await;
    }
}

/// Starts a gateway that takes SIGUSR1 as word to restart, and waits until it holds signals back.
async fn beginning(signal: Signal) -> GatewayUnderTest {
    let mut gateway = gateway().config(json!({"commands": {"restart": true}})).prepare().unwrap();
    gateway.launch().unwrap();
    survives(&gateway, signal).await;
    gateway
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_that_comes_before_the_gateway_listens_ends_it_properly() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut gateway = beginning(signal).await;
        assert!(!gateway.log().contains(LISTENING), "this is before:\n{}", gateway.log());
        gateway.signal(signal).unwrap();
        let status = gateway.exited().await.unwrap();
        assert_eq!(status.code(), Some(0), "{signal} {status:?}\n{}", gateway.log());
        assert!(gateway.log().contains(&format!("received {signal}; shutting down")), "{}", gateway.log());
    }
}

/// True if something was printed this often.
fn has_printed(gateway: &GatewayUnderTest, text: &str, times: usize) -> bool {
    gateway.log().matches(text).count() >= times
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_that_are_asked_for_at_every_moment_of_a_start_and_of_restarts_end_nothing() {
    const RESTARTS: usize = 3;
    let mut gateway = beginning(Signal::SIGUSR1).await;
    let deadline = Instant::now() + DEADLINE;
    while !has_printed(&gateway, RESTARTING, RESTARTS) {
        gateway.signal(Signal::SIGUSR1).unwrap();
        assert!(Instant::now() < deadline, "{}", gateway.log());
        tokio::task::yield_now().await;
    }
    // The last of them may still be on its way; the process is the one that was begun.
    gateway.signal(Signal::SIGTERM).unwrap();
    let status = gateway.exited().await.unwrap();
    assert_eq!(status.code(), Some(0), "{status:?}\n{}", gateway.log());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_in_the_middle_of_a_restart_is_heard_before_the_program_begins_anew_or_behind_it() {
    // Moments between the word to restart and the next listening: each round waits for one look more at the log.
    for looks in [0, 1, 10, 100, 1_000, 10_000] {
        let mut gateway = gateway().config(json!({"commands": {"restart": true}})).start().await.unwrap();
        gateway.signal(Signal::SIGUSR1).unwrap();
        gateway.logged(RESTARTING).await.unwrap();
        for _ in 0..looks {
            tokio::task::yield_now().await;
        }
        gateway.signal(Signal::SIGTERM).unwrap();
        let status = gateway.exited().await.unwrap();
        assert_eq!(status.code(), Some(0), "{looks} {status:?}\n{}", gateway.log());
    }
}

#[tokio::test]
async fn other_commands_of_that_name_end_as_ever() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}", silent.local_addr().unwrap());
    let here = gateway().prepare().unwrap();
    let mut asking =
        here.command().args(["gateway", "health", "--url", &url, "--token", "x"]).spawn().unwrap();
    // The command waits for an answer that does not come.
    let (_held, _) = silent.accept().await.unwrap();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(asking.id().unwrap()).unwrap());
    nix::sys::signal::kill(pid, Signal::SIGTERM).unwrap();
    let status = asking.wait().await.unwrap();
    assert!(!status.success(), "{status:?}");
}
