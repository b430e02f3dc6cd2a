//! AWS's signature of a request, version 4.
//!
//! The signing process is described in AWS's "Create a signed AWS API request"; the test vectors
//! are AWS's own.

use std::fmt::Write as _;

use hmac::{Hmac, Mac};
use jiff::Timestamp;
use sha2::digest::Output;
use sha2::{Digest, Sha256};
use url::Url;

use crate::net::NetError;
use crate::provider_key::ProviderKey;
use crate::wire::WireRequest;

/// Service name in signatures.
const SERVICE: &str = "bedrock";
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const CONTENT_TYPE: &str = "application/json";

/// The keys that sign.
#[derive(Clone, Copy)]
pub(super) struct AccessKeys<'a> {
    id: &'a str,
    secret: &'a str,
    /// Session token of temporary keys.
    session: Option<&'a str>,
}

impl<'a> AccessKeys<'a> {
    /// The keys in a provider key that has them.
    pub(super) fn of(key: &'a ProviderKey) -> Option<Self> {
        Some(Self {
            id: key.part("accessKeyId")?,
            secret: key.part("secretAccessKey")?,
            session: key.part("sessionToken"),
        })
    }
}

/// Signs a built request to Bedrock: host, time, content type and body.
pub(super) fn sign(
    keys: &AccessKeys<'_>,
    region: &str,
    method: &str,
    request: &mut WireRequest,
    now: i64,
) -> Result<(), NetError> {
    let url = Url::parse(&request.url).map_err(|_| NetError::Address(request.url.clone()))?;
    let time = amz_date(now);
    let host = host_of(&url);
    let mut headers = vec![("content-type", CONTENT_TYPE), ("host", &host), ("x-amz-date", &time)];
    if let Some(session) = keys.session {
        headers.push(("x-amz-security-token", session));
    }
    let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    let to_sign =
        Signable { method, path: url.path(), query: &query, headers: &headers, body: &request.body };
    let authorization = to_sign.authorization(keys, region, SERVICE, &time);
    // The owner's own headers must not part what is sent from what was signed.
    request.headers.set("content-type", CONTENT_TYPE)?;
    request.headers.set("x-amz-date", &time)?;
    if let Some(session) = keys.session {
        request.headers.set("x-amz-security-token", session)?;
    }
    request.headers.set("authorization", &authorization)?;
    Ok(())
}

/// The host header a client sends for an address.
fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Parts of a request that are signed.
struct Signable<'a> {
    method: &'a str,
    /// Path as it goes over the wire: it is encoded once more, as AWS does for every service but
    /// S3.
    path: &'a str,
    /// Decoded.
    query: &'a [(String, String)],
    /// Names in lower case, in their order.
    headers: &'a [(&'a str, &'a str)],
    body: &'a [u8],
}

impl Signable<'_> {
    fn authorization(&self, keys: &AccessKeys<'_>, region: &str, service: &str, time: &str) -> String {
        let date = time.split('T').next().unwrap_or_default();
        let scope = format!("{date}/{region}/{service}/aws4_request");
        let digest = Sha256::digest(self.canonical());
        let to_sign = format!("{ALGORITHM}\n{time}\n{scope}\n{digest:x}");
        let secret = format!("AWS4{}", keys.secret);
        let key = [date, region, service, "aws4_request"]
            .iter()
            .fold(secret.into_bytes(), |key, part| hmac(&key, part.as_bytes()).to_vec());
        let signature = hmac(&key, to_sign.as_bytes());
        let id = keys.id;
        let signed = self.signed_headers();
        format!("{ALGORITHM} Credential={id}/{scope}, SignedHeaders={signed}, Signature={signature:x}")
    }

    fn canonical(&self) -> String {
        let mut query: Vec<(String, String)> =
            self.query.iter().map(|(name, value)| (encode(name), encode(value))).collect();
        query.sort();
        let query: Vec<String> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let segments: Vec<String> = self.path.split('/').map(encode).collect();
        let mut headers = String::new();
        for (name, value) in self.headers {
            let value: Vec<&str> = value.split_whitespace().collect();
            // Writing to a string can't fail.
            let _ = writeln!(headers, "{name}:{}", value.join(" "));
        }
        format!(
            "{}\n{}\n{}\n{headers}\n{}\n{:x}",
            self.method,
            segments.join("/"),
            query.join("&"),
            self.signed_headers(),
            Sha256::digest(self.body)
        )
    }

    fn signed_headers(&self) -> String {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        names.join(";")
    }
}

/// Percent-encodes everything but letters, digits and `-._~`.
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// `20150830T123600Z`, of Unix milliseconds.
fn amz_date(now: i64) -> String {
    let time = Timestamp::from_millisecond(now).unwrap_or_default();
    time.strftime("%Y%m%dT%H%M%SZ").to_string()
}

fn hmac(key: &[u8], text: &[u8]) -> Output<Sha256> {
    // Keys of any length are taken.
    Hmac::<Sha256>::new_from_slice(key)
        .map(|mac| mac.chain_update(text).finalize().into_bytes())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use secrecy::SecretString;

    use super::*;
    use crate::net::Headers;

    const TIME: &str = "20150830T123600Z";
    const HOST: (&str, &str) = ("host", "example.amazonaws.com");
    const DATE: (&str, &str) = ("x-amz-date", TIME);
    const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

    fn keys() -> AccessKeys<'static> {
        AccessKeys { id: "AKIDEXAMPLE", secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", session: None }
    }

    /// AWS's published suite for version 4, as far as it concerns the parts used here.
    #[test]
    fn signatures_are_those_aws_publishes() {
        struct Row<'a> {
            name: &'a str,
            method: &'a str,
            path: &'a str,
            query: &'a [(&'a str, &'a str)],
            headers: &'a [(&'a str, &'a str)],
            body: &'a str,
            service: &'a str,
            signature: &'a str,
        }
        let plain = Row {
            name: "",
            method: "GET",
            path: "/",
            query: &[],
            headers: &[HOST, DATE],
            body: "",
            service: "service",
            signature: "",
        };
        let form = "application/x-www-form-urlencoded";
        let rows = [
            Row {
                name: "get-vanilla",
                signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
                ..plain
            },
            Row {
                name: "get-vanilla-query-order-key-case",
                query: &[("Param2", "value2"), ("Param1", "value1")],
                signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
                ..plain
            },
            Row {
                name: "get-utf8",
                path: "/ሴ",
                signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
                ..plain
            },
            Row {
                name: "get-space",
                path: "/example space/",
                signature: "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
                ..plain
            },
            Row {
                name: "post-vanilla",
                method: "POST",
                signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
                ..plain
            },
            Row {
                name: "post-x-www-form-urlencoded",
                method: "POST",
                body: "Param1=value1",
                headers: &[("content-type", form), HOST, DATE],
                signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
                ..plain
            },
            Row {
                name: "post-sts-header-before",
                method: "POST",
                headers: &[HOST, DATE, ("x-amz-security-token", TOKEN)],
                signature: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
                ..plain
            },
            Row {
                name: "the ListUsers example of the guide",
                service: "iam",
                query: &[("Version", "2010-05-08"), ("Action", "ListUsers")],
                headers: &[
                    ("content-type", "application/x-www-form-urlencoded; charset=utf-8"),
                    ("host", "iam.amazonaws.com"),
                    DATE,
                ],
                signature: "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
                ..plain
            },
        ];
        for row in rows {
            let query: Vec<_> = row.query.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            let to_sign = Signable {
                method: row.method,
                path: row.path,
                query: &query,
                headers: row.headers,
                body: row.body.as_bytes(),
            };
            let names: Vec<&str> = row.headers.iter().map(|(name, _)| *name).collect();
            let expect = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/{}/aws4_request, SignedHeaders={}, Signature={}",
                row.service,
                names.join(";"),
                row.signature
            );
            assert_eq!(
                to_sign.authorization(&keys(), "us-east-1", row.service, TIME),
                expect,
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn a_path_is_encoded_as_it_goes_over_the_wire_and_once_more() {
        let wire = format!("/model/{}/converse-stream", encode("us.anthropic.claude-3:0"));
        let to_sign = Signable { method: "POST", path: &wire, query: &[], headers: &[], body: b"" };
        assert_eq!(wire, "/model/us.anthropic.claude-3%3A0/converse-stream");
        assert!(
            to_sign.canonical().starts_with("POST\n/model/us.anthropic.claude-3%253A0/converse-stream\n")
        );
    }

    #[test]
    fn a_request_carries_what_was_signed() {
        let key = ProviderKey::from(SecretString::from(
            r#"{"accessKeyId":"AKIDEXAMPLE","secretAccessKey":"s3cret-s3cret","sessionToken":"session-token"}"#,
        ));
        let mut headers = Headers::default();
        headers.set("content-type", "text/of-the-owner").unwrap();
        let mut request = WireRequest {
            url: "http://127.0.0.1:8080/model/m/converse-stream".to_owned(),
            headers,
            body: Bytes::from_static(b"{}"),
        };
        sign(&AccessKeys::of(&key).unwrap(), "eu-west-1", "POST", &mut request, 1_440_938_160_000).unwrap();
        let sent: std::collections::BTreeMap<_, _> = request.headers.pairs().into_iter().collect();
        assert_eq!((sent["content-type"].as_str(), sent["x-amz-date"].as_str()), (CONTENT_TYPE, TIME));
        assert_eq!(sent["x-amz-security-token"], "session-token");
        let (start, signature) = sent["authorization"].rsplit_once('=').unwrap();
        assert_eq!(
            start,
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-1/bedrock/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature"
        );
        let to_sign = Signable {
            method: "POST",
            path: "/model/m/converse-stream",
            query: &[],
            headers: &[
                ("content-type", CONTENT_TYPE),
                ("host", "127.0.0.1:8080"),
                DATE,
                ("x-amz-security-token", "session-token"),
            ],
            body: b"{}",
        };
        let keys = AccessKeys::of(&key).unwrap();
        assert!(to_sign.authorization(&keys, "eu-west-1", SERVICE, TIME).ends_with(signature));
        assert!(AccessKeys::of(&ProviderKey::from(SecretString::from("bedrock-api-key"))).is_none());
    }
}
