use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::Compression as Level;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

mod ssrf;

/// Answers each request in turn.
async fn server(answers: Vec<Vec<u8>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await.unwrap();
            // The client may have gone: it was told more than it wanted.
            let _ = stream.write_all(&answer).await;
        }
    });
    port
}

fn answer(head: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn redirect(to: &str) -> Vec<u8> {
    answer(&format!("302 Found\r\nLocation: {to}"), "")
}

fn here() -> Vec<String> {
    vec!["127.0.0.1".to_owned()]
}

fn page(max_bytes: u64) -> FetchOptions {
    FetchOptions {
        overflow: Overflow::Cut,
        statuses: Statuses::Any,
        compression: Compression::Gzip,
        ..FetchOptions::file(max_bytes, &here())
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Level::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test]
async fn redirects_end() {
    for (limit, answers, expect) in [
        (3, vec![answer("302 Found", "")], WebError::NoLocation(302)),
        (3, vec![answer("308 Permanent Redirect", "")], WebError::NoLocation(308)),
        (3, vec![redirect("/a")], WebError::RedirectLoop),
        (3, vec![redirect("/b"), redirect("/c"), redirect("/b")], WebError::RedirectLoop),
        (3, vec![redirect("/1"), redirect("/2"), redirect("/3"), redirect("/4")], WebError::Redirects(3)),
        (0, vec![redirect("/1")], WebError::Redirects(0)),
    ] {
        let shown = format!("{limit} {expect}");
        let port = server(answers).await;
        let options = FetchOptions { max_redirects: limit, ..page(10) };
        let error = fetch(&format!("http://127.0.0.1:{port}/a"), &options).await.unwrap_err();
        assert_eq!(error, expect, "{shown}");
    }
    assert_eq!(WebError::Redirects(3).to_string(), "Too many redirects (limit: 3)");
    assert_eq!(WebError::RedirectLoop.to_string(), "Redirect loop detected");
    assert_eq!(WebError::NoLocation(302).to_string(), "Redirect missing location header (302)");
}

#[tokio::test]
async fn as_many_redirects_as_allowed_are_followed() {
    let port = server(vec![redirect("/1"), redirect("2"), redirect("?3"), answer("200 OK", "x")]).await;
    let mut document = fetch(&format!("http://127.0.0.1:{port}/a"), &page(10)).await.unwrap();
    assert_eq!(document.url.as_str(), format!("http://127.0.0.1:{port}/2?3"));
    assert_eq!(document.whole().await.unwrap(), b"x");
}

#[tokio::test]
async fn a_document_is_read_up_to_its_limit() {
    let named = "200 OK\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename=\"a b.png\"";
    let port = server(vec![answer(named, "12345")]).await;
    let mut document = get(&format!("http://127.0.0.1:{port}/a"), 5, &here()).await.unwrap();
    assert_eq!(document.name.as_deref(), Some("a b.png"));
    assert_eq!(document.content_type.as_deref(), Some("image/png"));
    assert_eq!(document.whole().await.unwrap(), b"12345");
    let port = server(vec![answer("200 OK", "123456")]).await;
    let error = get(&format!("http://127.0.0.1:{port}/a"), 5, &here()).await.unwrap_err();
    assert_eq!(error, WebError::TooLarge(5));
    let endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n0\r\n\r\n".to_vec();
    let port = server(vec![endless]).await;
    let mut document = get(&format!("http://127.0.0.1:{port}/a"), 5, &here()).await.unwrap();
    assert_eq!(document.chunk().await.unwrap_err(), WebError::TooLarge(5));
    let port = server(vec![answer("404 Not Found", "")]).await;
    let error = get(&format!("http://127.0.0.1:{port}/a"), 5, &here()).await.unwrap_err();
    assert_eq!(error, WebError::Status(404));
}

/// Body as sent, its encoding, the limit; what is read and whether it was cut.
#[tokio::test]
async fn a_page_is_unpacked_and_cut_at_its_limit() {
    let two = [gzip(b"one "), gzip(b"two")].concat();
    let mut damaged = gzip(&[b'x'; 1000]);
    damaged.truncate(15);
    type Read = Result<(&'static [u8], bool), WebError>;
    let rows: [(&str, Vec<u8>, u64, Read); 12] = [
        ("", b"12345".to_vec(), 5, Ok((b"12345", false))),
        ("", b"123456".to_vec(), 5, Ok((b"12345", true))),
        ("identity", b"12".to_vec(), 5, Ok((b"12", false))),
        ("", b"".to_vec(), 5, Ok((b"", false))),
        ("gzip", gzip(b"12345"), 5, Ok((b"12345", false))),
        ("x-GZIP", gzip(b"123456"), 5, Ok((b"12345", true))),
        ("gzip", gzip(b""), 5, Ok((b"", false))),
        ("gzip", two, 50, Ok((b"one two", false))),
        // A bomb: 20 MB in 20 KB.
        ("gzip", gzip(&vec![0; 20_000_000]), 8, Ok((&[0; 8], true))),
        ("gzip", damaged, 5000, Err(WebError::Damaged)),
        ("gzip", b"no gzip at all".to_vec(), 50, Err(WebError::Damaged)),
        ("br", b"1".to_vec(), 5, Err(WebError::Encoding("br".to_owned()))),
    ];
    for (at, (encoding, body, limit, expect)) in rows.into_iter().enumerate() {
        let head = if encoding.is_empty() {
            "200 OK".to_owned()
        } else {
            format!("200 OK\r\nContent-Encoding: {encoding}")
        };
        let port = server(vec![answer(&head, body)]).await;
        let read = async {
            let mut document = fetch(&format!("http://127.0.0.1:{port}/a"), &page(limit)).await?;
            let whole = document.whole().await?;
            Ok((whole, document.is_cut()))
        };
        let expect = expect.map(|(bytes, is_cut)| (bytes.to_vec(), is_cut));
        assert_eq!(read.await, expect, "row {at}: {encoding}");
    }
}

/// A server that would send five gigabytes is left when there is enough, with and without a length that says so.
#[tokio::test]
async fn nothing_is_read_behind_the_limit() {
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5368709120\r\n\r\n",
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let sending = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut sent = 0_u64;
            while sent < 5 << 30 && stream.write_all(&[b'x'; 64 * 1024]).await.is_ok() {
                sent += 64 * 1024;
            }
            sent
        });
        let mut document = fetch(&format!("http://127.0.0.1:{port}/a"), &page(100_000)).await.unwrap();
        assert_eq!((document.whole().await.unwrap().len(), document.is_cut()), (100_000, true));
        drop(document);
        assert!(sending.await.unwrap() < 64 << 20, "{head:?}");
    }
}

#[tokio::test]
async fn other_answers_are_given_where_they_count() {
    for status in ["201 Created", "404 Not Found", "500 Oops"] {
        let port = server(vec![answer(status, "why")]).await;
        let mut document = fetch(&format!("http://127.0.0.1:{port}/a"), &page(10)).await.unwrap();
        assert_eq!(document.status.to_string(), status[..3]);
        assert_eq!(document.whole().await.unwrap(), b"why");
    }
}

type Found = std::future::Ready<io::Result<Vec<SocketAddr>>>;

/// Scripted look-up: returns these answers in turn and counts the look-ups.
fn scripted(answers: Vec<Vec<SocketAddr>>) -> (impl Fn(String, u16) -> Found, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let look_up = move |_, _| {
        let at = counter.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok(answers.get(at).cloned().unwrap_or_default()))
    };
    (look_up, asked)
}

/// A name that is looked up anew for the connection would lead to the second address, where nobody listens.
#[tokio::test]
async fn the_connection_goes_to_the_addresses_that_were_checked() {
    let port = server(vec![answer("200 OK", "first")]).await;
    let first = SocketAddr::from(([127, 0, 0, 1], port));
    let second = SocketAddr::from(([127, 0, 0, 2], 1));
    let (look_up, asked) = scripted(vec![vec![first], vec![second]]);
    let options = FetchOptions { allowed: vec![format!("rebind.example:{port}")], ..page(10) };
    let address = format!("http://rebind.example:{port}/");
    let mut document = fetch_with(&address, &options, look_up).await.unwrap();
    assert_eq!(document.whole().await.unwrap(), b"first");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

/// The name leads outside when it is asked for first, and inside when a redirect leads to it.
#[tokio::test]
async fn each_hop_is_looked_up_and_checked_anew() {
    let port = server(vec![redirect("http://rebind.example/")]).await;
    let (look_up, asked) = scripted(vec![
        vec![SocketAddr::from(([127, 0, 0, 1], port))],
        vec![SocketAddr::from(([10, 0, 0, 1], 80))],
    ]);
    let options = FetchOptions { allowed: vec![format!("rebind.example:{port}")], ..page(10) };
    let error = fetch_with(&format!("http://rebind.example:{port}/"), &options, look_up).await.unwrap_err();
    assert_eq!((error, asked.load(Ordering::SeqCst)), (WebError::ResolvesToPrivate, 2));
}

#[tokio::test]
async fn one_private_address_among_public_ones_is_enough() {
    let public = SocketAddr::from(([93, 184, 216, 34], 80));
    for (found, expect) in [
        (vec![public, SocketAddr::from(([127, 0, 0, 1], 80))], WebError::ResolvesToPrivate),
        (vec!["[::ffff:10.0.0.1]:80".parse().unwrap()], WebError::ResolvesToPrivate),
        (vec!["[fd00::1]:80".parse().unwrap(), public], WebError::ResolvesToPrivate),
        (Vec::new(), WebError::NoHost("site.example".to_owned())),
    ] {
        let (look_up, _) = scripted(vec![found]);
        let error = fetch_with("http://site.example/", &page(10), look_up).await.unwrap_err();
        assert_eq!(error, expect);
    }
}

proptest! {
    /// Whatever form an IPv4 address is written in, its verdict is the same or stricter.
    #[test]
    fn a_private_address_is_private_in_every_form(bits: u32) {
        let plain = std::net::Ipv4Addr::from(bits);
        let [high, low] = [bits >> 16, bits & 0xffff];
        let mapped: IpAddr = format!("::ffff:{high:x}:{low:x}").parse().unwrap();
        prop_assert_eq!(is_public(mapped), is_public(plain.into()));
        for form in [
            format!("::{high:x}:{low:x}"),
            format!("64:ff9b::{high:x}:{low:x}"),
            format!("2002:{high:x}:{low:x}::1"),
            format!("2001:0:{high:x}:{low:x}::f7f7:f7f7"),
            format!("2001:0:808:808:0:0:{:x}:{:x}", !high & 0xffff, !low & 0xffff),
            format!("2606:4700::5efe:{high:x}:{low:x}"),
        ] {
            let address: IpAddr = form.parse().unwrap();
            prop_assert!(is_public(plain.into()) || !is_public(address), "{}", form);
        }
    }

    /// Numbers, hexadecimal and octal forms are all read as the address they are.
    #[test]
    fn every_spelling_is_read_as_its_address(bits: u32) {
        let plain = std::net::Ipv4Addr::from(bits);
        let [a, b, c, d] = plain.octets();
        for spelling in [
            format!("{bits}"),
            format!("0x{bits:x}"),
            format!("0{bits:o}"),
            format!("0x{a:x}.0x{b:X}.0{c:o}.{d}"),
            format!("{a}.{}", bits & 0x00ff_ffff),
            format!("{a}.{b}.{}", bits & 0xffff),
            format!("{a}.{b}.{c}.{d}."),
        ] {
            let url = Url::parse(&format!("http://{spelling}/")).unwrap();
            prop_assert_eq!(url.host(), Some(Host::Ipv4(plain)), "{}", spelling);
        }
    }
}
