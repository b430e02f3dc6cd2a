//! The shared secret: a token or a password (spec `gateway-protocol.md` §3.8).

use openclaw_config::settings::AuthKind;
use openclaw_protocol::params::connect::ClientDescription;

use super::client_kind::{is_browser, is_cli};
use crate::secret_digest::SecretDigest;

/// Secret that a client must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedSecret {
    /// `gateway.auth.mode`
    pub kind: AuthKind,
    /// Digest of the secret; without one nobody gets in by it.
    pub digest: Option<SecretDigest>,
}

/// Secrets that a client gave.
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

    /// True if nothing was given. Blank texts count as nothing.
    pub fn is_empty(&self) -> bool {
        present(self.token).is_none() && present(self.password).is_none()
    }
}

/// Reason why the shared secret was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthFailure {
    /// Kind of secret that counts: token or password.
    pub kind: AuthKind,
    /// Problem with the given secret.
    pub problem: SecretProblem,
}

/// Problem with a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretProblem {
    /// No secret was given.
    Missing,
    /// A different secret was given.
    Mismatch,
    /// The gateway has none.
    NotConfigured,
}

/// Compares the given credentials with the secret.
///
/// # Errors
/// Says what is missing or wrong.
pub fn authorize(secret: &SharedSecret, given: Credentials<'_>) -> Result<(), AuthFailure> {
    let given = match secret.kind {
        AuthKind::Token => given.token,
        AuthKind::Password => given.password,
    };
    let problem = match (&secret.digest, present(given)) {
        (None, _) => SecretProblem::NotConfigured,
        (Some(_), None) => SecretProblem::Missing,
        (Some(digest), Some(given)) if digest.matches(given) => return Ok(()),
        (Some(_), Some(_)) => SecretProblem::Mismatch,
    };
    Err(AuthFailure { kind: secret.kind, problem })
}

fn present(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

impl AuthFailure {
    /// True if a wrong secret was given, as opposed to none: guessing is throttled.
    pub fn is_guess(self) -> bool {
        self.problem == SecretProblem::Mismatch
    }

    /// Error text and close reason, with a hint that fits the client.
    pub fn message(self, client: &ClientDescription) -> String {
        let kind = self.kind.as_str();
        let problem = match self.problem {
            SecretProblem::Missing => "missing",
            SecretProblem::Mismatch => "mismatch",
            SecretProblem::NotConfigured => {
                return format!(
                    "unauthorized: gateway {kind} not configured on gateway (set gateway.auth.{kind})"
                );
            }
        };
        format!("unauthorized: gateway {kind} {problem} ({})", hint(self.kind, client))
    }
}

/// The advice that helps the person in front of the client.
fn hint(kind: AuthKind, client: &ClientDescription) -> String {
    let secret = kind.as_str();
    if is_cli(client) {
        return format!("set gateway.remote.{secret} to match gateway.auth.{secret}");
    }
    let text = match (kind, is_browser(client)) {
        (AuthKind::Token, true) => "open the dashboard URL and paste the token in Control UI settings",
        (AuthKind::Password, true) => "enter the password in Control UI settings",
        (AuthKind::Token, false) => "provide gateway auth token",
        (AuthKind::Password, false) => "provide gateway auth password",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: Option<&str>) -> SharedSecret {
        SharedSecret { kind: AuthKind::Token, digest: text.map(SecretDigest::of) }
    }

    fn password(text: Option<&str>) -> SharedSecret {
        SharedSecret { kind: AuthKind::Password, digest: text.map(SecretDigest::of) }
    }

    /// Vectors of §16.1.
    #[test]
    fn the_secret_that_the_mode_asks_for_decides() {
        let nothing = Credentials::default();
        let refused = |kind, problem| Err(AuthFailure { kind, problem });
        let given = |token, password| Credentials { token, password };
        let rows = [
            (token(Some("secret")), nothing, refused(AuthKind::Token, SecretProblem::Missing)),
            (token(Some("secret")), given(Some(""), None), refused(AuthKind::Token, SecretProblem::Missing)),
            (
                token(Some("secret")),
                given(None, Some("secret")),
                refused(AuthKind::Token, SecretProblem::Missing),
            ),
            (
                token(Some("secret")),
                given(Some("wrong"), None),
                refused(AuthKind::Token, SecretProblem::Mismatch),
            ),
            (
                token(Some("secret")),
                given(Some("sécret"), None),
                refused(AuthKind::Token, SecretProblem::Mismatch),
            ),
            (token(Some("secret")), given(Some("secret"), None), Ok(())),
            (token(Some("secret")), Credentials::bearer("secret"), Ok(())),
            (token(None), given(Some("x"), None), refused(AuthKind::Token, SecretProblem::NotConfigured)),
            (password(Some("secret")), nothing, refused(AuthKind::Password, SecretProblem::Missing)),
            (
                password(Some("secret")),
                given(Some("secret"), None),
                refused(AuthKind::Password, SecretProblem::Missing),
            ),
            (
                password(Some("secret")),
                given(None, Some("wrong")),
                refused(AuthKind::Password, SecretProblem::Mismatch),
            ),
            (password(Some("secret")), given(None, Some("secret")), Ok(())),
            (
                password(None),
                given(None, Some("x")),
                refused(AuthKind::Password, SecretProblem::NotConfigured),
            ),
        ];
        for (secret, given, expect) in rows {
            assert_eq!(authorize(&secret, given), expect, "{secret:?} {given:?}");
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        assert_eq!(
            format!("{:?}", token(Some("hush"))),
            "SharedSecret { kind: Token, digest: Some([redacted]) }"
        );
    }
}
