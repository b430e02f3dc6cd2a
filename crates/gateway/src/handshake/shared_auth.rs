//! The shared secret: a token or a password (spec `gateway-protocol.md` §3.8).

use openclaw_protocol::params::connect::ClientDescription;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::client_kind::{is_browser, is_cli};

/// A secret, kept only as its digest: comparing takes the same time whatever is given (KB-10).
#[derive(Clone, PartialEq, Eq)]
pub struct SecretDigest([u8; 32]);

impl SecretDigest {
    /// The digest of a secret.
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret.as_bytes()).into())
    }

    /// Whether the text is the secret.
    pub fn matches(&self, given: &str) -> bool {
        self.0.ct_eq(&Self::of(given).0).into()
    }
}

impl std::fmt::Debug for SecretDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

/// What a client must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedSecret {
    /// `gateway.auth.mode: "token"`; without a token nobody gets in by it.
    Token(Option<SecretDigest>),
    /// `gateway.auth.mode: "password"`; without a password nobody gets in by it.
    Password(Option<SecretDigest>),
}

/// What a client gave.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Credentials<'a> {
    /// `auth.token`
    pub token: Option<&'a str>,
    /// `auth.password`
    pub password: Option<&'a str>,
}

impl<'a> Credentials<'a> {
    /// A bearer of an HTTP request: it may be the token or the password.
    pub fn bearer(text: &'a str) -> Self {
        Self { token: Some(text), password: Some(text) }
    }

    /// Whether anything was given. Blank texts count as nothing.
    pub fn is_empty(&self) -> bool {
        present(self.token).is_none() && present(self.password).is_none()
    }
}

/// How a client proved that it knows the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMethod {
    /// The token.
    Token,
    /// The password.
    Password,
    /// A device token.
    DeviceToken,
}

/// Why the shared secret was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthFailure {
    /// No token was given.
    TokenMissing,
    /// Another token was given.
    TokenMismatch,
    /// The gateway has no token.
    TokenNotConfigured,
    /// No password was given.
    PasswordMissing,
    /// Another password was given.
    PasswordMismatch,
    /// The gateway has no password.
    PasswordNotConfigured,
}

/// Compares what was given with what is asked for.
///
/// # Errors
/// Says what is missing or wrong.
pub fn authorize(secret: &SharedSecret, given: Credentials<'_>) -> Result<AuthMethod, AuthFailure> {
    match secret {
        SharedSecret::Token(None) => Err(AuthFailure::TokenNotConfigured),
        SharedSecret::Token(Some(digest)) => match present(given.token) {
            None => Err(AuthFailure::TokenMissing),
            Some(token) if digest.matches(token) => Ok(AuthMethod::Token),
            Some(_) => Err(AuthFailure::TokenMismatch),
        },
        SharedSecret::Password(None) => Err(AuthFailure::PasswordNotConfigured),
        SharedSecret::Password(Some(digest)) => match present(given.password) {
            None => Err(AuthFailure::PasswordMissing),
            Some(password) if digest.matches(password) => Ok(AuthMethod::Password),
            Some(_) => Err(AuthFailure::PasswordMismatch),
        },
    }
}

fn present(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

impl AuthFailure {
    /// Whether a wrong secret was given, as opposed to none: guessing is throttled.
    pub fn is_guess(self) -> bool {
        matches!(self, Self::TokenMismatch | Self::PasswordMismatch)
    }

    /// Error text and close reason, with a hint that fits the client.
    pub fn message(self, client: &ClientDescription) -> String {
        let hint = Hint::of(client);
        match self {
            Self::TokenMissing => format!("unauthorized: gateway token missing ({})", hint.token()),
            Self::TokenMismatch => format!("unauthorized: gateway token mismatch ({})", hint.token()),
            Self::TokenNotConfigured => {
                "unauthorized: gateway token not configured on gateway (set gateway.auth.token)".to_owned()
            }
            Self::PasswordMissing => format!("unauthorized: gateway password missing ({})", hint.password()),
            Self::PasswordMismatch => {
                format!("unauthorized: gateway password mismatch ({})", hint.password())
            }
            Self::PasswordNotConfigured => {
                "unauthorized: gateway password not configured on gateway (set gateway.auth.password)"
                    .to_owned()
            }
        }
    }
}

/// Which advice helps the person in front of the client.
enum Hint {
    Cli,
    Browser,
    Other,
}

impl Hint {
    fn of(client: &ClientDescription) -> Self {
        if is_cli(client) {
            Self::Cli
        } else if is_browser(client) {
            Self::Browser
        } else {
            Self::Other
        }
    }

    fn token(&self) -> &'static str {
        match self {
            Self::Cli => "set gateway.remote.token to match gateway.auth.token",
            Self::Browser => "open the dashboard URL and paste the token in Control UI settings",
            Self::Other => "provide gateway auth token",
        }
    }

    fn password(&self) -> &'static str {
        match self {
            Self::Cli => "set gateway.remote.password to match gateway.auth.password",
            Self::Browser => "enter the password in Control UI settings",
            Self::Other => "provide gateway auth password",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: Option<&str>) -> SharedSecret {
        SharedSecret::Token(text.map(SecretDigest::of))
    }

    fn password(text: Option<&str>) -> SharedSecret {
        SharedSecret::Password(text.map(SecretDigest::of))
    }

    /// Vectors of §16.1.
    #[test]
    fn the_secret_that_the_mode_asks_for_decides() {
        let nothing = Credentials::default();
        let given = |token, password| Credentials { token, password };
        let rows = [
            (token(Some("secret")), nothing, Err(AuthFailure::TokenMissing)),
            (token(Some("secret")), given(Some(""), None), Err(AuthFailure::TokenMissing)),
            (token(Some("secret")), given(None, Some("secret")), Err(AuthFailure::TokenMissing)),
            (token(Some("secret")), given(Some("wrong"), None), Err(AuthFailure::TokenMismatch)),
            (token(Some("secret")), given(Some("sécret"), None), Err(AuthFailure::TokenMismatch)),
            (token(Some("secret")), given(Some("secret"), None), Ok(AuthMethod::Token)),
            (token(Some("secret")), Credentials::bearer("secret"), Ok(AuthMethod::Token)),
            (token(None), given(Some("x"), None), Err(AuthFailure::TokenNotConfigured)),
            (password(Some("secret")), nothing, Err(AuthFailure::PasswordMissing)),
            (password(Some("secret")), given(Some("secret"), None), Err(AuthFailure::PasswordMissing)),
            (password(Some("secret")), given(None, Some("wrong")), Err(AuthFailure::PasswordMismatch)),
            (password(Some("secret")), given(None, Some("secret")), Ok(AuthMethod::Password)),
            (password(None), given(None, Some("x")), Err(AuthFailure::PasswordNotConfigured)),
        ];
        for (secret, given, expect) in rows {
            assert_eq!(authorize(&secret, given), expect, "{secret:?} {given:?}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        assert_eq!(format!("{:?}", token(Some("hush"))), "Token(Some([redacted]))");
    }
}
