//! GitHub Copilot: a code entered on another device, and the short-lived token it is exchanged for (spec `models.md` §8.4).

use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};

use super::LoginServers;
use super::endpoint::{EndpointError, get, post_form};
use crate::net::Http;

/// Provider id.
pub const PROVIDER: &str = "github-copilot";
/// Address of requests unless the token names another one.
pub const DEFAULT_BASE_URL: &str = "https://api.individual.githubcopilot.com";
/// The public client that GitHub knows for Copilot; it has no secret.
const CLIENT_ID: &str = "Iv1.b507a08c87ecfe98";
const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The wait between two questions when the server names none, and what `slow_down` adds (RFC 8628 §3.5).
const STEP: Duration = Duration::from_secs(5);
/// Longest life of a device code, whatever the server says.
const MAX_LIFE: Duration = Duration::from_secs(30 * 60);

/// A code for a person to enter.
#[derive(Debug, Clone)]
pub struct DeviceCode {
    /// Code that the person types.
    pub user_code: String,
    /// Address of the page on which the code is entered.
    pub page: String,
    /// Lifetime of the code.
    pub life: Duration,
    device_code: SecretString,
    interval: Duration,
}

/// Error of a login with a device code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// The code was not entered in time.
    #[error("the code was not entered in time; start again")]
    Expired,
    /// The person said no.
    #[error("the login was refused at GitHub")]
    Denied,
    /// The server could not be asked, or said something else.
    #[error("{0}")]
    Endpoint(#[from] EndpointError),
}

/// Asks for a code.
///
/// # Errors
/// See [`EndpointError`].
pub async fn begin(http: &Http, servers: &LoginServers) -> Result<DeviceCode, EndpointError> {
    let url = format!("{}/login/device/code", servers.github);
    let answer = post_form(http, &url, &[("client_id", CLIENT_ID), ("scope", "read:user")]).await?;
    let text = |name: &str| {
        let found = answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        found.ok_or_else(|| EndpointError::Garbage(format!("an answer without {name}")))
    };
    let seconds = |name: &str| answer.get(name).and_then(Value::as_u64).map(Duration::from_secs);
    Ok(DeviceCode {
        user_code: text("user_code")?.to_owned(),
        page: text("verification_uri")?.to_owned(),
        life: seconds("expires_in").unwrap_or(MAX_LIFE).min(MAX_LIFE),
        device_code: SecretString::from(text("device_code")?),
        interval: seconds("interval").filter(|wait| !wait.is_zero()).unwrap_or(STEP),
    })
}

/// Waits until the person has entered the code; the token of their account.
///
/// # Errors
/// See [`DeviceError`].
pub async fn finish(
    http: &Http,
    servers: &LoginServers,
    code: &DeviceCode,
) -> Result<SecretString, DeviceError> {
    let asked = async {
        let mut interval = code.interval;
        loop {
            tokio::time::sleep(interval).await;
            match poll(http, servers, code).await? {
                Poll::Token(token) => return Ok(token),
                Poll::Pending => {}
                Poll::SlowDown => interval += STEP,
            }
        }
    };
    tokio::time::timeout(code.life, asked).await.unwrap_or(Err(DeviceError::Expired))
}

enum Poll {
    Token(SecretString),
    Pending,
    SlowDown,
}

async fn poll(http: &Http, servers: &LoginServers, code: &DeviceCode) -> Result<Poll, DeviceError> {
    let url = format!("{}/login/oauth/access_token", servers.github);
    let fields =
        [("client_id", CLIENT_ID), ("device_code", code.device_code.expose_secret()), ("grant_type", GRANT)];
    match post_form(http, &url, &fields).await {
        Ok(answer) => match answer.get("access_token").and_then(Value::as_str) {
            Some(token) if !token.is_empty() => Ok(Poll::Token(SecretString::from(token))),
            _ => Err(EndpointError::Garbage("an answer without access_token".to_owned()).into()),
        },
        Err(EndpointError::Refused { code, status, words }) => match code.as_str() {
            "authorization_pending" => Ok(Poll::Pending),
            "slow_down" => Ok(Poll::SlowDown),
            "expired_token" => Err(DeviceError::Expired),
            "access_denied" => Err(DeviceError::Denied),
            _ => Err(EndpointError::Refused { status, code, words }.into()),
        },
        // A lost question does not matter: the person is still busy with the code.
        Err(EndpointError::Net(_) | EndpointError::Slow) => Ok(Poll::Pending),
        Err(error @ (EndpointError::InvalidGrant(_) | EndpointError::Garbage(_))) => Err(error.into()),
    }
}

/// A token that Copilot takes.
#[derive(Debug, Clone)]
pub struct CopilotToken {
    /// The token.
    pub token: SecretString,
    /// Unix milliseconds.
    pub expires_at: i64,
}

/// Exchanges the token of an account.
///
/// # Errors
/// See [`EndpointError`].
pub async fn exchange(
    http: &Http,
    servers: &LoginServers,
    account: &SecretString,
) -> Result<CopilotToken, EndpointError> {
    let url = format!("{}/copilot_internal/v2/token", servers.github_api);
    copilot_token(&get(http, &url, account.expose_secret()).await?)
}

fn copilot_token(answer: &Map<String, Value>) -> Result<CopilotToken, EndpointError> {
    let missing = |name: &str| EndpointError::Garbage(format!("an answer without {name}"));
    let token = answer.get("token").and_then(Value::as_str).filter(|token| !token.trim().is_empty());
    let token = token.ok_or_else(|| missing("token"))?;
    let at = answer.get("expires_at").ok_or_else(|| missing("expires_at"))?;
    let at = at.as_i64().or_else(|| at.as_str()?.trim().parse().ok()).ok_or_else(|| missing("expires_at"))?;
    // Seconds, unless it is far too late for them.
    let expires_at = if at > 10_000_000_000 { at } else { at.saturating_mul(1_000) };
    Ok(CopilotToken { token: SecretString::from(token), expires_at })
}

/// Returns the address of requests with a token: its `proxy-ep`, as the API's host.
pub fn base_url(token: &str) -> String {
    let host = token.split(';').find_map(|part| part.trim().strip_prefix("proxy-ep="));
    let host = host.map(|host| host.trim().trim_start_matches("https://").trim_end_matches('/'));
    let is_host = |host: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
        !host.is_empty() && host.chars().all(plain)
    };
    match host.filter(is_host) {
        Some(host) => match host.strip_prefix("proxy.") {
            Some(rest) => format!("https://api.{rest}"),
            None => format!("https://{host}"),
        },
        None => DEFAULT_BASE_URL.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use openclaw_testkit::login_server::{LoginServer, Scripted};
    use serde_json::json;

    use super::*;

    const CODE: &str = r#"{"device_code":"d","user_code":"u","verification_uri":"v"}"#;

    /// The device flow of `models.md` §8.4, with the answers of RFC 8628 §3.5.
    #[tokio::test]
    async fn a_device_is_asked_for_until_it_is_let_in_or_not() {
        let server = LoginServer::start().await;
        let (http, servers) = (Http::default(), LoginServers::all_at(&server.url()));
        let rows = [
            (200, r#"{"error":"authorization_pending"}"#, "pending"),
            (200, r#"{"error":"slow_down"}"#, "slow down"),
            (200, r#"{"error":"expired_token"}"#, "the code was not entered in time; start again"),
            (200, r#"{"error":"access_denied"}"#, "the login was refused at GitHub"),
            (400, r#"{"error":"slow_down"}"#, "slow down"),
            (403, r#"{"error":"unknown"}"#, "the login server answered 403: unknown"),
            (200, r#"{"access_token":"gho"}"#, "gho"),
        ];
        server.script([Scripted::status(200, CODE)]);
        let code = begin(&http, &servers).await.unwrap();
        for (status, answer, expect) in rows {
            server.script([Scripted::status(status, answer)]);
            let found = match poll(&http, &servers, &code).await {
                Ok(Poll::Token(token)) => token.expose_secret().to_owned(),
                Ok(Poll::Pending) => "pending".to_owned(),
                Ok(Poll::SlowDown) => "slow down".to_owned(),
                Err(error) => error.to_string(),
            };
            assert_eq!(found, expect, "{answer}");
        }
        server.script([Scripted::status(200, r#"{"token":"t","expires_at":1}"#)]);
        exchange(&http, &servers, &SecretString::from("gho")).await.unwrap();

        let asked = server.requests();
        let client = "Iv1.b507a08c87ecfe98";
        let seen = |at: usize| {
            let field = |name| asked[at].field(name);
            (asked[at].path.as_str(), field("client_id"), field("device_code"), field("grant_type"))
        };
        assert_eq!(seen(0), ("/login/device/code", client, "", ""));
        let grant = "urn:ietf:params:oauth:grant-type:device_code";
        for at in 1..=rows.len() {
            assert_eq!(seen(at), ("/login/oauth/access_token", client, "d", grant));
        }
        assert_eq!(seen(rows.len() + 1), ("/copilot_internal/v2/token", "", "", ""));
        assert_eq!(asked[rows.len() + 1].bearer(), Some("gho"));
    }

    #[test]
    fn the_token_says_where_requests_go() {
        let rows = [
            (
                "tid=1;exp=2;proxy-ep=proxy.business.githubcopilot.com;sku=x",
                "https://api.business.githubcopilot.com",
            ),
            ("proxy-ep=https://proxy.example.com/", "https://api.example.com"),
            ("proxy-ep=other.example.com", "https://other.example.com"),
            ("proxy-ep=;x", DEFAULT_BASE_URL),
            ("proxy-ep=evil.example/@x", DEFAULT_BASE_URL),
            ("opaque", DEFAULT_BASE_URL),
        ];
        for (token, expect) in rows {
            assert_eq!(base_url(token), expect, "{token}");
        }
    }

    #[test]
    fn expiry_is_in_seconds_or_milliseconds() {
        for (at, expect) in [
            (json!(1_760_000_000), Some(1_760_000_000_000_i64)),
            (json!("1760000000"), Some(1_760_000_000_000)),
            (json!(1_760_000_000_000_i64), Some(1_760_000_000_000)),
            (json!("soon"), None),
        ] {
            let answer = json!({"token": "t", "expires_at": at});
            let found = copilot_token(answer.as_object().unwrap()).ok().map(|token| token.expires_at);
            assert_eq!(found, expect, "{at}");
        }
    }
}
