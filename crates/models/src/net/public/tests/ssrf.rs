//! Ways to name what is inside, each with its refusal.

use super::*;

const NO_URL: &str = "Invalid URL: must be http or https";
const PRIVATE: &str = "Blocked: private/internal IP address";
const RESOLVES: &str = "Blocked: resolves to private/internal IP address";

/// Spec `tools.md` §5.2.
#[test]
fn only_the_public_internet_is_public() {
    for (address, expect) in [
        ("93.184.216.34", true),
        ("172.32.0.1", true),
        ("172.15.255.255", true),
        ("100.63.255.255", true),
        ("100.128.0.1", true),
        ("198.17.255.255", true),
        ("198.20.0.0", true),
        ("223.255.255.255", true),
        ("192.0.1.1", true),
        ("::ffff:8.8.8.8", true),
        ("2606:4700::1111", true),
        ("2a00:1450:4001:80b::200e", true),
        ("2001:4860:4860::8888", true),
        ("2002:808:808::1", true),
        ("2001:0:808:808::f7f7:f7f7", true),
        ("127.0.0.1", false),
        ("127.255.255.254", false),
        ("10.0.0.5", false),
        ("172.16.0.0", false),
        ("172.31.0.1", false),
        ("192.168.1.1", false),
        ("169.254.169.254", false),
        ("100.64.1.1", false),
        ("100.127.255.255", false),
        ("198.18.0.1", false),
        ("198.19.255.255", false),
        ("192.0.0.8", false),
        ("192.0.2.1", false),
        ("198.51.100.7", false),
        ("203.0.113.7", false),
        ("192.88.99.1", false),
        ("224.0.0.1", false),
        ("239.255.255.250", false),
        ("240.0.0.1", false),
        ("255.255.255.255", false),
        ("0.0.0.0", false),
        ("0.1.2.3", false),
        ("::1", false),
        ("::", false),
        ("::127.0.0.1", false),
        ("::8.8.8.8", false),
        ("::ffff:127.0.0.1", false),
        ("::ffff:7f00:1", false),
        ("::ffff:0:7f00:1", false),
        ("fc00::1", false),
        ("fd00::1", false),
        ("fe80::1", false),
        ("fe90::1", false),
        ("febf::1", false),
        ("fec0::1", false),
        ("feff::1", false),
        ("ff02::1", false),
        ("100::1", false),
        ("2001:db8::1", false),
        ("3fff::1", false),
        ("2001:2::1", false),
        ("2001:10::1", false),
        ("2001:20::1", false),
        ("5f00::1", false),
        ("64:ff9b::7f00:1", false),
        ("64:ff9b:1::7f00:1", false),
        ("2002:7f00:1::1", false),
        ("2002:a00:5::1", false),
        ("2001:0:7f00:1::f7f7:f7f7", false),
        ("2001:0:808:808::80ff:fffe", false),
        ("2606:4700::5efe:a00:5", false),
        ("2606:4700::200:5efe:a00:5", false),
    ] {
        assert_eq!(is_public(address.parse().unwrap()), expect, "{address}");
    }
}

/// No name is looked up: the refusal comes before, or the look-up is scripted.
#[tokio::test]
async fn what_is_inside_is_not_asked_however_it_is_spelled() {
    let blocked = |name: &str| format!("Blocked hostname: {name}");
    let rows: Vec<(&str, String)> = vec![
        ("", NO_URL.into()),
        ("nonsense", NO_URL.into()),
        ("//example.com/a", NO_URL.into()),
        ("ftp://example.com/a", NO_URL.into()),
        ("file:///etc/passwd", NO_URL.into()),
        ("gopher://127.0.0.1:70/x", NO_URL.into()),
        ("javascript:alert(1)", NO_URL.into()),
        ("data:text/html,x", NO_URL.into()),
        ("ws://127.0.0.1/", NO_URL.into()),
        ("http://", NO_URL.into()),
        ("http://[fe80::1%25eth0]/", NO_URL.into()),
        ("http://1.2.3.4.5/", NO_URL.into()),
        ("http://256.256.256.256/", NO_URL.into()),
        ("http://localhost/a", blocked("localhost")),
        ("http://LOCALHOST:8080/", blocked("localhost")),
        ("http://localhost./", blocked("localhost")),
        ("http://%6cocalhost/", blocked("localhost")),
        ("http://loc%61lhost/", blocked("localhost")),
        ("http://ｌｏｃａｌｈｏｓｔ/", blocked("localhost")),
        ("http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", blocked("localhost")),
        ("http://local\u{ad}host/", blocked("localhost")),
        ("http://a.localhost/", blocked("a.localhost")),
        ("http://printer.local/a", blocked("printer.local")),
        ("http://PRINTER.LoCaL./a", blocked("printer.local")),
        ("http://foo.internal/", blocked("foo.internal")),
        ("http://foo。internal/", blocked("foo.internal")),
        ("http://bücher.internal/", blocked("xn--bcher-kva.internal")),
        ("http://Metadata.Google.Internal/", blocked("metadata.google.internal")),
        ("http://user:pass@localhost/", blocked("localhost")),
        ("http://example.com@localhost/", blocked("localhost")),
        ("http://127.0.0.1/a", PRIVATE.into()),
        ("HTTP://127.0.0.1/a", PRIVATE.into()),
        ("https:127.0.0.1", PRIVATE.into()),
        ("http:\\\\127.0.0.1\\a", PRIVATE.into()),
        (" \thttp://127.0.0.1/\n", PRIVATE.into()),
        ("ht\ntp://127.0.0.1/", PRIVATE.into()),
        ("http://127.0.0.1./a", PRIVATE.into()),
        ("http://127.1/", PRIVATE.into()),
        ("http://127.0.1/", PRIVATE.into()),
        ("http://0/", PRIVATE.into()),
        ("http://2130706433/a", PRIVATE.into()),
        ("http://017700000001/", PRIVATE.into()),
        ("http://0x7f000001/", PRIVATE.into()),
        ("http://0x7f.1/a", PRIVATE.into()),
        ("http://0177.0.0.1/", PRIVATE.into()),
        ("http://127.0x0.00.0x1/", PRIVATE.into()),
        ("http://１２７.０.０.１/", PRIVATE.into()),
        ("http://①②⑦.⓪.⓪.①/", PRIVATE.into()),
        ("http://127。0。0。1/", PRIVATE.into()),
        ("http://%31%32%37.0.0.1/", PRIVATE.into()),
        ("http://169.254.169.254/latest/meta-data/", PRIVATE.into()),
        ("http://2852039166/", PRIVATE.into()),
        ("http://0xa9fea9fe/", PRIVATE.into()),
        ("http://100.64.1.1/", PRIVATE.into()),
        ("http://example.com@10.0.0.5/", PRIVATE.into()),
        ("http://example.com:80@127.0.0.1/", PRIVATE.into()),
        ("http://127.0.0.1#@example.com/", PRIVATE.into()),
        ("http://127.0.0.1\\@example.com/", PRIVATE.into()),
        ("http://127.0.0.1?@example.com/", PRIVATE.into()),
        ("http://[::1]/", PRIVATE.into()),
        ("http://[::]/", PRIVATE.into()),
        ("http://[0:0:0:0:0:0:0:1]:80/", PRIVATE.into()),
        ("http://[::127.0.0.1]/", PRIVATE.into()),
        ("http://[::ffff:127.0.0.1]/", PRIVATE.into()),
        ("http://[::ffff:7f00:1]/a", PRIVATE.into()),
        ("http://[::FFFF:A9FE:A9FE]/", PRIVATE.into()),
        ("http://[fe80::1]/", PRIVATE.into()),
        ("http://[fd00:ec2::254]/", PRIVATE.into()),
        ("http://[64:ff9b::169.254.169.254]/", PRIVATE.into()),
        ("http://[2002:7f00:1::]/", PRIVATE.into()),
        ("http://[ff02::1]/", PRIVATE.into()),
        ("http://127.0.0.1.nip.example/", RESOLVES.into()),
        ("http://xn--bcher-kva.example/", RESOLVES.into()),
        ("http://Bücher.Example./", RESOLVES.into()),
        ("http://127.0.0.1.example@inside.example/", RESOLVES.into()),
        ("http://notlocalhost/", RESOLVES.into()),
        ("http://localhost.example/", RESOLVES.into()),
    ];
    assert!(rows.len() >= 40);
    for (address, expect) in rows {
        let (look_up, _) = scripted(vec![vec![SocketAddr::from(([10, 1, 2, 3], 80))]]);
        let options = FetchOptions { allowed: Vec::new(), ..page(10) };
        let error = fetch_with(address, &options, look_up).await.unwrap_err();
        assert_eq!(error.to_string(), expect, "{address:?}");
        assert!(error.is_refusal(), "{address:?}");
    }
}

/// Forbidden addresses are refused in redirects too.
#[tokio::test]
async fn a_redirect_does_not_lead_inside() {
    for (location, expect) in [
        ("http://127.0.0.2:1/secret", PRIVATE.to_owned()),
        ("//127.0.0.2/secret", PRIVATE.to_owned()),
        ("\\\\127.0.0.2\\secret", PRIVATE.to_owned()),
        ("http://2130706434/", PRIVATE.to_owned()),
        ("http://[::ffff:7f00:2]/", PRIVATE.to_owned()),
        ("http://169.254.169.254/latest/", PRIVATE.to_owned()),
        ("http://127.0.0.1@127.0.0.2/", PRIVATE.to_owned()),
        ("http://localhost/", "Blocked hostname: localhost".to_owned()),
        ("https://LOCALHOST./", "Blocked hostname: localhost".to_owned()),
        ("http://a.internal/", "Blocked hostname: a.internal".to_owned()),
        ("http://inside.example/", RESOLVES.to_owned()),
        ("file:///etc/passwd", NO_URL.to_owned()),
        ("ftp://127.0.0.1/", NO_URL.to_owned()),
        ("data:text/plain,x", NO_URL.to_owned()),
        ("http://", "Redirect missing location header (302)".to_owned()),
    ] {
        let port = server(vec![redirect(location)]).await;
        let options = FetchOptions { allowed: vec![format!("127.0.0.1:{port}")], ..page(10) };
        let (look_up, _) = scripted(vec![vec![SocketAddr::from(([10, 1, 2, 3], 80))]]);
        let error = fetch_with(&format!("http://127.0.0.1:{port}/"), &options, look_up).await.unwrap_err();
        assert_eq!(error.to_string(), expect, "{location}");
    }
}

/// `host` and `host:port` in the list mean this host, not what sounds like it.
#[test]
fn an_allowed_host_is_that_host_alone() {
    let allowed = ["Good.example".to_owned(), " 127.0.0.1:81 ".to_owned()];
    for (host, port, expect) in [
        ("good.example", 80, true),
        ("good.example", 8080, true),
        ("127.0.0.1", 81, true),
        ("127.0.0.1", 80, false),
        ("a.good.example", 80, false),
        ("good.example.evil", 80, false),
    ] {
        assert_eq!(is_allowed(host, port, &allowed), expect, "{host}:{port}");
    }
}
