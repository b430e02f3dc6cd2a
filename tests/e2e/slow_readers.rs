//! Clients that read an answer slowly or not at all, beside others that keep up.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use openclaw_testkit::model_server::{ModelServer, Reply};
use openclaw_testkit::{GatewayUnderTest, Login, SocketOptions, TOKEN, WsClient};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::gateway;
use crate::support::connect::tab;
use crate::support::conversation::{send, whole_answer};
use crate::support::memory::{GROWTH, resident_at_most};

/// Receive buffer of the system for a client that does not read, in bytes.
const RECEIVE_BUFFER: u32 = 4_096;
const TOKEN_TEXT: &str = " ab";

/// A gateway whose model answers with so many tokens.
async fn answering(tokens: usize) -> (ModelServer, GatewayUnderTest) {
    let model = ModelServer::answering(move |_| Reply::deltas(vec![TOKEN_TEXT; tokens])).await;
    let gateway = gateway().fake_model(&model.v1()).start().await.unwrap();
    (model, gateway)
}

/// A way to the gateway on which what it says comes at 1 KB a second while `is_slow` says so.
async fn slow_line(port: u16, mut is_slow: watch::Receiver<bool>) -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut line = JoinSet::new();
    line.spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(RECEIVE_BUFFER).unwrap();
        let gateway = socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await.unwrap();
        let (mut from_client, to_client) = client.into_split();
        let (from_gateway, mut to_gateway) = gateway.into_split();
        tokio::join!(
            tokio::io::copy(&mut from_client, &mut to_gateway),
            trickle(from_gateway, to_client, &mut is_slow)
        )
        .0
        .unwrap();
    });
    (address.port(), line)
}

async fn trickle(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    is_slow: &mut watch::Receiver<bool>,
) {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let mut piece = [0; 1_024];
    loop {
        let length = from.read(&mut piece).await.unwrap_or(0);
        if length == 0 || to.write_all(&piece[..length]).await.is_err() {
            return;
        }
        if *is_slow.borrow_and_update() {
            tokio::select! {
                _ = second.tick() => {}
                _ = is_slow.changed() => {}
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_1_kb_a_second_gets_the_newest_text_and_holds_nobody_up() {
    const TOKENS: usize = 10_000;
    let (_model, gateway) = answering(TOKENS).await;
    let all = TOKEN_TEXT.repeat(TOKENS);
    let (pace, is_slow) = watch::channel(false);
    let (port, _line) = slow_line(gateway.port(), is_slow).await;
    let (mut slow, _) = WsClient::connect(port, Login::token(TOKEN)).await.unwrap();
    let mut fast = [gateway.client().await.unwrap(), gateway.client().await.unwrap()];
    pace.send_replace(true);
    let before = resident_at_most(&gateway);

    send(&mut fast[0], "main", "hello", "run-1").await;
    let mut reading = JoinSet::new();
    for mut client in fast {
        let all = all.clone();
        reading.spawn(async move { whole_answer(&mut client, "run-1", &all).await });
    }
    // The other clients have all of it while the slow one has some kilobytes.
    reading.join_all().await;
    pace.send_replace(false);
    let events = whole_answer(&mut slow, "run-1", &all).await;
    assert!(events < TOKENS / 2, "{events} events were kept for a client that reads slowly");
    let grown = resident_at_most(&gateway) - before;
    assert!(grown < GROWTH, "the gateway grew by {grown} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_hundred_clients_half_stop_reading_and_nobody_is_cut_off() {
    const CLIENTS: usize = 200;
    const TOKENS: usize = 500;
    let (_model, gateway) = answering(TOKENS).await;
    let all = TOKEN_TEXT.repeat(TOKENS);
    let deaf_socket = SocketOptions { receive_buffer: Some(RECEIVE_BUFFER), ..SocketOptions::default() };
    let (mut deaf, mut reading) = (Vec::new(), JoinSet::new());
    let mut sender = gateway.client().await.unwrap();
    for number in 0..CLIENTS / 2 {
        deaf.push(WsClient::connect_with(gateway.port(), tab(number), &deaf_socket).await.unwrap().0);
        let (mut client, _) = WsClient::connect(gateway.port(), tab(number)).await.unwrap();
        let all = all.clone();
        reading.spawn(async move { whole_answer(&mut client, "run-1", &all).await });
    }
    let before = resident_at_most(&gateway);
    send(&mut sender, "main", "hello", "run-1").await;
    assert_eq!(reading.join_all().await.len(), CLIENTS / 2);
    let grown = resident_at_most(&gateway) - before;
    assert!(grown < GROWTH, "the gateway grew by {grown} bytes");
    // The queue for them stays far below the size at which a client is cut off.
    for mut client in deaf {
        whole_answer(&mut client, "run-1", &all).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_long_answers_at_once_cut_off_nobody_who_reads_them_late() {
    const TOKENS: usize = 1_500;
    let (model, gateway) = answering(TOKENS).await;
    let all = TOKEN_TEXT.repeat(TOKENS);
    let socket = SocketOptions { receive_buffer: Some(RECEIVE_BUFFER), ..SocketOptions::default() };
    let (mut client, _) = WsClient::connect_with(gateway.port(), Login::token(TOKEN), &socket).await.unwrap();
    let runs = [0, 1, 2, 3].map(|number| format!("run-{number}"));
    for run in &runs {
        client.send("chat.send", crate::support::conversation::message(run, "hello", run)).await.unwrap();
    }
    for number in 0..runs.len() {
        model.over(number).await;
    }
    for run in &runs {
        whole_answer(&mut client, run, &all).await;
    }
}
