//! The login of OpenAI Codex with a ChatGPT account (spec `models.md` §8.4).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value};
use url::Url;

use super::LoginServers;
use super::endpoint::{EndpointError, post_form};
use super::pkce::Proof;
use crate::net::Http;

/// Provider id.
pub const PROVIDER: &str = "openai-codex";
/// The public client that OpenAI knows for this login; it has no secret.
const CLIENT_ID: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
/// Address to which the browser is redirected. The server takes no other.
pub const REDIRECT: &str = "http://localhost:1455/auth/callback";
const SCOPE: &str = "openid profile email offline_access";
/// Our name in requests.
const ORIGINATOR: &str = "openclaw";
/// Lifetime of a token whose answer names none, in seconds.
const DEFAULT_LIFETIME: i64 = 3_600;

/// A login as it is kept.
#[derive(Debug, Clone)]
pub struct Login {
    /// Access token.
    pub access: SecretString,
    /// Refresh token that renews the login.
    pub refresh: SecretString,
    /// Unix milliseconds.
    pub expires: i64,
    /// ChatGPT account.
    pub account: Option<String>,
    /// The person's address.
    pub email: Option<String>,
}

/// The page to open in a browser.
pub fn authorize_url(servers: &LoginServers, proof: &Proof) -> String {
    let query = [
        ("response_type", "code"),
        ("client_id", CLIENT_ID),
        ("redirect_uri", REDIRECT),
        ("scope", SCOPE),
        ("code_challenge", &proof.challenge),
        ("code_challenge_method", "S256"),
        ("state", &proof.state),
        ("id_token_add_organizations", "true"),
        ("codex_cli_simplified_flow", "true"),
        ("originator", ORIGINATOR),
    ];
    let page = format!("{}/oauth/authorize", servers.openai);
    Url::parse_with_params(&page, query).map_or(page, String::from)
}

/// Exchanges the code that came back. `now` is in Unix milliseconds.
///
/// # Errors
/// See [`EndpointError`].
pub async fn exchange(
    http: &Http,
    servers: &LoginServers,
    code: &str,
    proof: &Proof,
    now: i64,
) -> Result<Login, EndpointError> {
    let fields = [
        ("grant_type", "authorization_code"),
        ("client_id", CLIENT_ID),
        ("code", code),
        ("code_verifier", &proof.verifier),
        ("redirect_uri", REDIRECT),
    ];
    let answer = post_form(http, &token_url(servers), &fields).await?;
    login(&answer, None, now)
}

/// Renews a login. `now` is in Unix milliseconds.
///
/// # Errors
/// See [`EndpointError`].
pub async fn refresh(
    http: &Http,
    servers: &LoginServers,
    refresh: &SecretString,
    now: i64,
) -> Result<Login, EndpointError> {
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh.expose_secret()),
        ("client_id", CLIENT_ID),
    ];
    let answer = post_form(http, &token_url(servers), &fields).await?;
    login(&answer, Some(refresh), now)
}

fn token_url(servers: &LoginServers) -> String {
    format!("{}/oauth/token", servers.openai)
}

/// A server that gives no new refresh token lets the old one live.
fn login(answer: &Map<String, Value>, old: Option<&SecretString>, now: i64) -> Result<Login, EndpointError> {
    let text = |name: &str| answer.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let missing = |name: &str| EndpointError::Garbage(format!("an answer without {name}"));
    let access = text("access_token").ok_or_else(|| missing("access_token"))?;
    let refresh = text("refresh_token").map(SecretString::from).or_else(|| old.cloned());
    let seconds = answer.get("expires_in").and_then(Value::as_f64).filter(|seconds| *seconds > 0.0);
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds; as saturates")]
    let lifetime = seconds.map_or(DEFAULT_LIFETIME * 1_000, |seconds| (seconds * 1_000.0) as i64);
    let claims = claims(access);
    let identity = text("id_token").map(self::claims).unwrap_or_default();
    Ok(Login {
        access: SecretString::from(access),
        refresh: refresh.ok_or_else(|| missing("refresh_token"))?,
        expires: now.saturating_add(lifetime),
        account: claims.account.or(identity.account),
        email: claims.email.or(identity.email),
    })
}

/// Claims of a token about its owner. The provider is responsible for checking the token; only its
/// content is read here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Claims {
    account: Option<String>,
    email: Option<String>,
}

fn claims(token: &str) -> Claims {
    let payload = token.split('.').nth(1).unwrap_or_default();
    let decoded = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('='));
    let Some(claims) = decoded.ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok()) else {
        return Claims::default();
    };
    let text = |section: &str, name: &str| {
        let value = claims.get(section)?.get(name)?.as_str()?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let own = claims.get("email").and_then(Value::as_str).map(str::to_owned);
    Claims {
        account: text("https://api.openai.com/auth", "chatgpt_account_id"),
        email: text("https://api.openai.com/profile", "email").or(own),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(claims: &Value) -> String {
        format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    #[test]
    fn the_page_names_everything_the_server_wants() {
        let proof = Proof { verifier: "v".to_owned(), challenge: "c".to_owned(), state: "s".to_owned() };
        assert_eq!(
            authorize_url(&LoginServers::default(), &proof),
            "https://auth.openai.com/oauth/authorize?response_type=code&client_id=app_EMoamEEZ73f0CkXaXp7hrann\
             &redirect_uri=http%3A%2F%2Flocalhost%3A1455%2Fauth%2Fcallback\
             &scope=openid+profile+email+offline_access&code_challenge=c&code_challenge_method=S256&state=s\
             &id_token_add_organizations=true&codex_cli_simplified_flow=true&originator=openclaw"
        );
    }

    #[test]
    fn a_login_is_read_from_the_answer_and_its_token() {
        let access = token(&json!({"https://api.openai.com/auth": {"chatgpt_account_id": "acc"},
            "https://api.openai.com/profile": {"email": "me@x"}}));
        let answer = json!({"access_token": access, "refresh_token": "r2", "expires_in": 10});
        let found = login(answer.as_object().unwrap(), None, 1_000).unwrap();
        assert_eq!(
            (found.expires, found.account.as_deref(), found.email.as_deref()),
            (11_000, Some("acc"), Some("me@x"))
        );
        assert_eq!(found.refresh.expose_secret(), "r2");
    }

    #[test]
    fn a_refresh_token_that_is_not_replaced_lives_on() {
        let answer = json!({"access_token": "opaque"});
        let old = SecretString::from("r1");
        let found = login(answer.as_object().unwrap(), Some(&old), 0).unwrap();
        assert_eq!((found.refresh.expose_secret(), found.expires, found.account), ("r1", 3_600_000, None));
        let error = login(answer.as_object().unwrap(), None, 0).unwrap_err();
        assert_eq!(error.to_string(), "the login server sent garbage: an answer without refresh_token");
    }

    #[test]
    fn odd_tokens_say_nothing() {
        for odd in ["", ".", "a.b.c", "a.eyI.c"] {
            assert_eq!(claims(odd), Claims::default(), "{odd}");
        }
    }
}
