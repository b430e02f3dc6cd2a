use std::fs;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

const LAX: AddressRules = AddressRules { https_only: false, public_only: false };

/// A server that answers each request by its path.
async fn server(answer: fn(&str) -> Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if socket.read(&mut byte).await.unwrap_or(0) == 0 {
                    break;
                }
                request.push(byte[0]);
            }
            let request = String::from_utf8_lossy(&request).into_owned();
            let path = request.split(' ').nth(1).unwrap_or_default();
            let _ = socket.write_all(&answer(path)).await;
        }
    });
    format!("http://{address}")
}

fn answered(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn answer(path: &str) -> Vec<u8> {
    match path {
        "/a%20b.txt" => answered("200 OK", b"content"),
        "/moved" => answered("302 Found\r\nlocation: /a%20b.txt", b""),
        "/loop" => answered("301 Moved\r\nlocation: /loop", b""),
        "/to-a-file" => answered("302 Found\r\nlocation: file:///etc/passwd", b""),
        "/nowhere" => answered("302 Found", b""),
        "/huge" => b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nx".to_vec(),
        "/x.tar.bz2" => answered("200 OK", include_bytes!("../../../unpack/hi.tar.bz2")),
        _ => answered("404 Not Found", b"no"),
    }
}

async fn fetched(path: &str, archive: Option<Archive>, target: &Path) -> Result<String, FetchError> {
    let url = format!("{}{path}", server(answer).await);
    let order = Fetch { url, target: target.join("tools/demo"), archive, strip: 0 };
    fetch(&order, &Http::default(), LAX).await
}

#[tokio::test]
async fn a_file_is_fetched_and_an_archive_unpacked() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("tools/demo");
    let said = fetched("/moved", None, dir.path()).await.unwrap();
    let file = target.join("a_20b.txt");
    assert_eq!(said, format!("Downloaded 7 bytes to {}", file.display()));
    assert_eq!(fs::read_to_string(file).unwrap(), "content");
    let said = fetched("/x.tar.bz2", Some(Archive::TarBz2), dir.path()).await.unwrap();
    assert_eq!(said, format!("Unpacked 1 files into {}", target.display()));
    assert_eq!(fs::read_to_string(target.join("a")).unwrap(), "hi\n");
    assert_eq!(fs::read_dir(target).unwrap().count(), 2, "nothing else is left");
}

#[tokio::test]
async fn what_goes_wrong_is_told_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for (path, expect) in [
        ("/none", "answered 404"),
        ("/loop", "redirects"),
        ("/to-a-file", "is not an https address"),
        ("/nowhere", "answered 302"),
        ("/huge", "larger than 1024 MiB"),
    ] {
        let error = fetched(path, None, dir.path()).await.unwrap_err().to_string();
        assert!(error.contains(expect), "{path}: {error}");
    }
    let error = fetched("/a%20b.txt", Some(Archive::Zip), dir.path()).await.unwrap_err().to_string();
    assert!(error.starts_with("the archive could not be unpacked"), "{error}");
    assert_eq!(fs::read_dir(dir.path().join("tools/demo")).unwrap().count(), 0);
}

#[tokio::test]
async fn only_public_https_addresses_are_asked() {
    let refused = [
        "http://example.com/x",
        "ftp://example.com/x",
        "https://127.0.0.1/x",
        "https://[::1]/x",
        "https://10.0.0.1/x",
        "https://169.254.169.254/latest/meta-data",
        "https://[::ffff:192.168.0.1]/x",
        "https://100.64.0.1/x",
        "https://localhost/x",
    ];
    for url in refused {
        assert!(check(&Url::parse(url).unwrap(), STRICT).await.is_err(), "{url}");
    }
    for url in ["https://1.1.1.1/x", "https://[2606:4700::1111]/x"] {
        assert!(check(&Url::parse(url).unwrap(), STRICT).await.is_ok(), "{url}");
    }
}

#[test]
fn a_file_name_is_plain() {
    for (url, expect) in [
        ("https://x/a/b.bin", "b.bin"),
        ("https://x/a/", "download"),
        ("https://x/.bashrc", "bashrc"),
        ("https://x/a%2Fb?c=d", "a_2Fb"),
        ("https://x", "download"),
    ] {
        assert_eq!(file_name(&Url::parse(url).unwrap()), expect, "{url}");
    }
}
