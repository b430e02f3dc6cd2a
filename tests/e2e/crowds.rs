//! Strangers who fill the gateway's places, and large frames of those who may not ask for anything.

use std::net::SocketAddr;

use openclaw_testkit::{DEADLINE, DeviceIdentity, GatewayUnderTest, Login, TOKEN, WsClient};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::gateway;
use crate::support::memory::resident_at_most;

/// Number of connections, more than the gateway has places for.
const CROWD: usize = 2_060;

async fn stranger(port: u16) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let connected = timeout(DEADLINE, socket.connect(SocketAddr::from(([127, 0, 0, 1], port)))).await;
    connected.expect("the gateway accepts").unwrap()
}

/// Opens many sockets that say this and never read.
async fn crowd(port: u16, words: &str, count: usize) -> Vec<TcpStream> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    // The sockets of the crowd are files of this process as well.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, most, most).unwrap();
    let mut crowd = Vec::new();
    for _ in 0..count {
        let mut socket = stranger(port).await;
        // A connection that had to make room for the next is gone already.
        let _ = socket.write_all(words.as_bytes()).await;
        crowd.push(socket);
    }
    crowd
}

async fn served(gateway: &GatewayUnderTest) {
    let mut socket = TcpStream::connect(("127.0.0.1", gateway.port())).await.unwrap();
    socket.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(DEADLINE, socket.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    gateway.client().await.unwrap().request("health", json!({})).await.unwrap();
}

/// The page names its script.
async fn script(port: u16) -> String {
    let mut socket = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    socket.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut page = String::new();
    socket.read_to_string(&mut page).await.unwrap();
    let (_, rest) = page.split_once("src=\"").unwrap();
    format!("/{}", rest.split('"').next().unwrap().trim_start_matches(['.', '/']))
}

#[tokio::test]
async fn sockets_that_ask_and_never_read_keep_nobody_out() {
    let gateway = gateway().start().await.unwrap();
    let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", script(gateway.port()).await);
    let crowd = crowd(gateway.port(), &request.repeat(8), CROWD).await;
    served(&gateway).await;
    drop(crowd);
}

#[tokio::test]
async fn sockets_that_never_log_in_keep_nobody_out() {
    let gateway = gateway().start().await.unwrap();
    let mut waiting = gateway.client().await.unwrap();
    let upgrade = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let crowd = crowd(gateway.port(), upgrade, CROWD).await;
    served(&gateway).await;
    waiting.request("health", json!({})).await.unwrap();
    drop(crowd);
}

/// Size limit of a node's frames.
const NODE_MAX: usize = 16 * 1024 * 1024;
const NODES: usize = 6;
/// Bytes of a frame that would take some hundred megabytes if it were read as JSON values.
const BOMB: usize = 6 * 1024 * 1024;
/// Memory that the gateway may have for all of it, and for whatever else happens meanwhile, in
/// bytes.
const MOST: usize = 200_000_000;

/// A node with a device of its own.
fn a_node(number: usize) -> Login {
    Login::node(TOKEN, DeviceIdentity::from_seed(u8::try_from(number).unwrap() + 1))
}

/// A request of many small values, which take fifty times the memory once they are read.
fn bomb(method: &str, bytes: usize) -> String {
    let head = format!(r#"{{"type":"req","id":"bomb","method":"{method}","params":["#);
    let values = (bytes - head.len() - "0]}".len()) / 2;
    format!("{head}{}0]}}", "0,".repeat(values))
}

#[tokio::test]
async fn large_frames_of_nodes_are_refused_within_bounded_memory() {
    let gateway = gateway().start().await.unwrap();
    let mut at_once = JoinSet::new();
    for number in 0..NODES {
        let login = a_node(number);
        let (mut node, _) = WsClient::connect(gateway.port(), login).await.unwrap();
        at_once.spawn(async move {
            node.send_raw(&bomb("chat.send", BOMB)).await.unwrap();
            node.answer("bomb").await.unwrap()
        });
    }
    for answer in at_once.join_all().await {
        assert_eq!(answer.error["message"], "unauthorized role: node");
    }
    let most = resident_at_most(&gateway);
    eprintln!("PEAK {most}");
    assert!(most < MOST, "{most} bytes");
    gateway.client().await.unwrap().request("health", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_frame_that_a_node_has_no_use_for_ends_the_connection_at_its_header() {
    let gateway = gateway().start().await.unwrap();
    let (mut node, hello) = WsClient::connect(gateway.port(), a_node(0)).await.unwrap();
    assert_eq!(hello["policy"]["maxPayload"], NODE_MAX);
    // The gateway may be gone before all of it is sent.
    let _ = node.send_raw(&"x".repeat(NODE_MAX + 1)).await;
    let (code, _) = node.closed().await.unwrap();
    assert!([1009, 1006].contains(&code), "closed with {code}");
}

#[tokio::test]
async fn params_of_too_many_values_are_refused_within_bounded_memory() {
    let gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    client.send_raw(&bomb("chat.send", BOMB)).await.unwrap();
    let answer = client.answer("bomb").await.unwrap();
    let text = "invalid chat.send params: must NOT have more than 20000 values";
    assert_eq!(answer.error["message"], text);
    let most = resident_at_most(&gateway);
    eprintln!("PEAK {most}");
    assert!(most < MOST, "{most} bytes");
}

/// Announces a large frame and sends half of it: small frames of others are not kept waiting.
#[tokio::test]
async fn a_large_frame_that_never_ends_keeps_no_small_one_waiting() {
    let gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let (node, _) = WsClient::connect(gateway.port(), a_node(0)).await.unwrap();
    let mut half = node.into_stream();
    let header = [&[0x81, 0xff][..], &(NODE_MAX as u64).to_be_bytes(), &[0; 4]].concat();
    half.write_all(&header).await.unwrap();
    half.write_all(&vec![b' '; NODE_MAX / 2]).await.unwrap();
    let (mut other, _) = WsClient::connect(gateway.port(), a_node(0)).await.unwrap();
    let refused = other.call("health", json!({})).await.unwrap();
    assert_eq!(refused.error["message"], "unauthorized role: node");
    client.request("health", json!({})).await.unwrap();
}

#[tokio::test]
async fn all_of_it_at_once_stays_below_300_megabytes_and_health_answers() {
    let gateway = gateway().start().await.unwrap();
    let mut client = gateway.client().await.unwrap();
    let request = format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", script(gateway.port()).await);
    let mut at_once = JoinSet::new();
    for number in 0..NODES {
        let login = a_node(number);
        let (mut node, _) = WsClient::connect(gateway.port(), login).await.unwrap();
        at_once.spawn(async move {
            node.send_raw(&bomb("chat.send", BOMB)).await.unwrap();
            node.answer("bomb").await.unwrap()
        });
    }
    let crowd = crowd(gateway.port(), &request.repeat(8), CROWD).await;
    client.request("health", json!({})).await.unwrap();
    served(&gateway).await;
    at_once.join_all().await;
    let most = resident_at_most(&gateway);
    eprintln!("PEAK {most}");
    assert!(most < 300_000_000, "{most} bytes");
    drop(crowd);
}
