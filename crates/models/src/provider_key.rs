//! Key with which a provider is called. It travels as one secret string; some providers need
//! several values in it.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret, SecretString};

/// Members of a composite key that are the credential itself, in the order they are looked for.
const CREDENTIAL: &[&str] = &["token", "access", "key"];
/// Members that name a place or a person. They may be shown; every other one is redacted.
const PUBLIC: &[&str] =
    &["projectId", "quotaProjectId", "accountId", "gatewayId", "region", "location", "email", "expires"];

/// A key: a plain string, or a JSON object of strings such as `{"token": …, "projectId": …}` (spec `models.md` §8.4).
#[derive(Debug, Clone)]
pub(crate) struct ProviderKey {
    whole: SecretString,
    parts: BTreeMap<String, SecretString>,
}

impl From<SecretString> for ProviderKey {
    fn from(whole: SecretString) -> Self {
        let text = whole.expose_secret().trim();
        let parts: BTreeMap<String, serde_json::Value> = if text.starts_with('{') {
            serde_json::from_str(text).unwrap_or_default()
        } else {
            BTreeMap::new()
        };
        let parts = parts
            .into_iter()
            .filter_map(|(name, value)| Some((name, SecretString::from(value.as_str()?))))
            .collect();
        Self { whole, parts }
    }
}

impl ProviderKey {
    /// The key, or the credential of a composite one.
    pub(crate) fn secret(&self) -> &SecretString {
        CREDENTIAL.iter().find_map(|name| self.parts.get(*name)).unwrap_or(&self.whole)
    }

    /// Returns the secret as text.
    pub(crate) fn expose(&self) -> &str {
        self.secret().expose_secret()
    }

    /// A member of a composite key.
    pub(crate) fn part(&self, name: &str) -> Option<&str> {
        self.parts.get(name).map(ExposeSecret::expose_secret).filter(|text| !text.is_empty())
    }

    /// Takes everything secret out of a text.
    pub(crate) fn redact(&self, text: &str) -> String {
        let hidden =
            self.parts.iter().filter(|(name, _)| !PUBLIC.contains(&name.as_str())).map(|(_, part)| part);
        let whole = crate::net::redact(text, Some(self.whole.expose_secret()));
        hidden.fold(whole, |text, part| crate::net::redact(&text, Some(part.expose_secret())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> ProviderKey {
        ProviderKey::from(SecretString::from(text))
    }

    #[test]
    fn a_plain_key_is_itself() {
        for text in ["sk-123456", "{not json", "[1]"] {
            let key = key(text);
            assert_eq!((key.expose(), key.part("projectId")), (text, None));
        }
    }

    #[test]
    fn a_composite_key_is_read_by_its_parts() {
        let key = key(r#"{"token":"ya29.abcdef","projectId":"my-project","n":1}"#);
        assert_eq!((key.expose(), key.part("projectId")), ("ya29.abcdef", Some("my-project")));
        assert_eq!((key.part("n"), key.part("region")), (None, None));
    }

    #[test]
    fn everything_secret_is_redacted_and_places_are_not() {
        let key = key(r#"{"accessKeyId":"AKIA0000","secretAccessKey":"s3cret-s3cret","region":"us-east-1"}"#);
        let text = key.redact("AKIA0000 signed with s3cret-s3cret in us-east-1");
        assert_eq!(text, "[redacted] signed with [redacted] in us-east-1");
        assert!(!format!("{key:?}").contains("s3cret"));
    }
}
