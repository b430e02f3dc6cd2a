//! The network, and what else listens outside.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use openclaw_tools::sandbox::Level;
use serde_json::json;

use super::bench::{attempt, bench};

fn connect(family: &str, address: &str) -> String {
    format!("python3 -c \"import socket; socket.socket({family}).connect({address})\"")
}

#[tokio::test]
async fn nobody_outside_is_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = format!("openclaw-test-{}", std::process::id());
    let abstract_one = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    abstract_one.set_nonblocking(true).unwrap();
    let unreachable = &["Network is unreachable", "Permission denied", "Address family not supported"][..];
    for level in [Level::Namespaces, Level::Landlock] {
        let Some(bench) = bench(level, json!({})).await else { continue };
        let file = bench.home.path().join("gateway.sock");
        let _file_one = UnixListener::bind(&file).unwrap();
        let refused = &["Connection refused", "Address family not supported"][..];
        let internet = "socket.AF_INET,socket.SOCK_STREAM";
        let rows = [
            attempt("the gateway on loopback", connect(internet, &format!("('127.0.0.1',{port})")), refused),
            attempt("the internet", connect(internet, "('1.1.1.1',80)"), unreachable),
            attempt("the cloud's metadata", connect(internet, "('169.254.169.254',80)"), unreachable),
            attempt(
                "the internet, version 6",
                connect("socket.AF_INET6,socket.SOCK_STREAM", "('2606:4700::1111',80)"),
                &[
                    "Network is unreachable",
                    "Cannot assign requested address",
                    "Address family not supported",
                ],
            ),
            attempt("datagrams", connect("socket.AF_INET,socket.SOCK_DGRAM", "('8.8.8.8',53)"), unreachable),
            attempt(
                "names",
                "python3 -c \"import socket; socket.gethostbyname('example.com')\"",
                &["name resolution", "not known"],
            ),
            attempt(
                "an abstract socket",
                connect("socket.AF_UNIX,socket.SOCK_STREAM", &format!("b'\\\\0{name}'")),
                refused,
            ),
            attempt(
                "a socket in the home",
                connect("socket.AF_UNIX,socket.SOCK_STREAM", &format!("'{}'", file.display())),
                &["No such file", "Address family not supported"],
            ),
            attempt(
                "raw packets",
                "python3 -c \"import socket; socket.socket(socket.AF_INET,socket.SOCK_RAW,1)\"",
                &["Operation not permitted", "Address family not supported"],
            ),
            attempt(
                "packets of the wire",
                "python3 -c \"import socket; socket.socket(socket.AF_PACKET,socket.SOCK_RAW,0)\"",
                &["Address family not supported"],
            ),
            attempt(
                "the hypervisor",
                connect("socket.AF_VSOCK,socket.SOCK_STREAM", "(2,1)"),
                &["Address family not supported"],
            ),
            attempt(
                "the kernel's ciphers",
                "python3 -c \"import socket; socket.socket(socket.AF_ALG,socket.SOCK_SEQPACKET,0)\"",
                &["Address family not supported"],
            ),
            attempt(
                "the bash way",
                format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'"),
                &["Connection refused", "Address family not supported", "socket:"],
            ),
        ];
        bench.refuses(&rows).await;
    }
    assert!(listener.accept().is_err() && abstract_one.accept().is_err(), "somebody connected");
}

#[tokio::test]
async fn programs_inside_reach_each_other() {
    let Some(bench) = bench(Level::Namespaces, json!({})).await else { return };
    let script = "import socket\ns=socket.socket(); s.bind(('127.0.0.1',0)); s.listen()\n\
                  c=socket.create_connection(s.getsockname()); print('heard')\n";
    std::fs::write(bench.box_dir().join("talk.py"), script).unwrap();
    assert_eq!(bench.run("python3 talk.py").await, "heard");
}

#[tokio::test]
async fn the_network_is_reached_where_the_owner_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for level in [Level::Namespaces, Level::Landlock] {
        let Some(bench) = bench(level, json!({"docker": {"network": "host"}})).await else { continue };
        let said =
            bench.run(&connect("socket.AF_INET,socket.SOCK_STREAM", &format!("('127.0.0.1',{port})"))).await;
        assert_eq!(said, "(no output)");
        listener.accept().unwrap();
    }
}
