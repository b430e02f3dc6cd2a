//! Identity of an endpoint, by which its vectors are told from those of others (spec `memory.md` §7).

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Provider ids whose endpoint is part of the identity.
const OPENAI: &str = "openai";
const GEMINI: &str = "gemini";
/// Header that does not count for any provider.
const AUTHORIZATION: &str = "authorization";
/// Header with Gemini's key, which does not count there.
const GEMINI_KEY: &str = "x-goog-api-key";
/// Parts of the names of headers whose values may be secrets.
const SECRET: &[&str] = &["key", "token", "secret", "auth", "cookie", "password", "credential", "session"];

/// Provider, model and endpoint of vectors: only those of one identity may be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedderIdentity {
    /// Provider id as in index files.
    pub provider: String,
    /// Model name without a provider's prefix.
    pub model: String,
    /// Fingerprint of the endpoint, the same as OpenClaw 2026.2.9 computes.
    pub provider_key: String,
    /// Fingerprints of the same endpoint that differ in a slash at the end of its address or in
    /// headers that hold secrets. An index that was made under one of them needs not be made anew.
    pub equivalent_keys: Vec<String>,
}

impl EmbedderIdentity {
    /// The identity of an endpoint on the internet. `addresses` are the spellings of its address,
    /// the one that counts first; `headers` those of its requests without the provider's own key.
    #[must_use]
    pub fn remote(provider: &str, model: &str, addresses: &[String], headers: &[(String, String)]) -> Self {
        if provider != OPENAI && provider != GEMINI {
            return Self::plain(provider, model);
        }
        let open: Vec<(String, String)> =
            headers.iter().filter(|(name, _)| !is_secret(name)).cloned().collect();
        let variants = [headers, open.as_slice()];
        let mut keys: Vec<String> = Vec::new();
        for headers in variants {
            for address in addresses {
                let key = fingerprint(&json!({"provider": provider, "baseUrl": address, "model": model,
                    "headers": counted(provider, headers)}));
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        let provider_key = if keys.is_empty() { String::new() } else { keys.remove(0) };
        Self { provider: provider.to_owned(), model: model.to_owned(), provider_key, equivalent_keys: keys }
    }

    /// The identity of a model that has no endpoint of its own, as one on this machine.
    #[must_use]
    pub fn plain(provider: &str, model: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            provider_key: fingerprint(&json!({"provider": provider, "model": model})),
            equivalent_keys: Vec::new(),
        }
    }
}

fn fingerprint(document: &Value) -> String {
    Sha256::digest(document.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The headers that count, in the order of their names.
fn counted(provider: &str, headers: &[(String, String)]) -> Vec<Value> {
    let is_key = |name: &str| {
        let lower = name.to_lowercase();
        lower == AUTHORIZATION || (provider == GEMINI && lower == GEMINI_KEY)
    };
    let mut counted: Vec<&(String, String)> = headers.iter().filter(|(name, _)| !is_key(name)).collect();
    counted.sort_by_cached_key(|(name, _)| collation(name));
    counted.into_iter().map(|(name, value)| json!([name, value])).collect()
}

/// Sorts names as JavaScript's `localeCompare` does: by letters, then small before capital.
fn collation(name: &str) -> (Vec<(u8, char)>, Vec<bool>) {
    const MARKS: &str = "_-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";
    let weight = |c: char| match MARKS.find(c) {
        Some(at) => (0, char::from(u8::try_from(at).unwrap_or(u8::MAX))),
        None if c.is_ascii_digit() => (1, c),
        None => (2, c.to_ascii_lowercase()),
    };
    (name.chars().map(weight).collect(), name.chars().map(|c| c.is_ascii_uppercase()).collect())
}

fn is_secret(name: &str) -> bool {
    let lower = name.to_lowercase();
    SECRET.iter().any(|part| lower.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn json_type() -> Vec<(String, String)> {
        headers(&[("Content-Type", "application/json")])
    }

    /// `provider_key_vectors` of the golden file `memory-schema.json`.
    #[test]
    fn fingerprints_are_those_of_the_reference() {
        let remote = |provider: &str, model: &str, address: &str| {
            EmbedderIdentity::remote(provider, model, &[address.to_owned()], &json_type())
        };
        let rows = [
            (
                remote(OPENAI, "fake-embed-64", "http://127.0.0.1:28411/v1/"),
                "04604c7f73eb564a4a8b273213cb159dcdc2caba1b97d61e2187fabf780b302f",
            ),
            (
                remote("voyage", "voyage-4-large", "http://anywhere"),
                "f76b05d4400af8e72c62ebb5b848b18ee4c12ac85b3a6a8c28f2ae03f1310aff",
            ),
            (
                remote(GEMINI, "gemini-embedding-001", "http://127.0.0.1:28423/v1beta"),
                "b318052d7b07c4c8e2dbbf0bba2ab52111e99237d4e9685f8a31aa9d3782336a",
            ),
            (
                remote(OPENAI, "text-embedding-3-small", "https://api.openai.com/v1"),
                "c03eebd0dbf911b9e937d66411651b4976ddde97fb3a820da68c2176068e449d",
            ),
            (
                EmbedderIdentity::plain(
                    "local",
                    "hf:ggml-org/embeddinggemma-300M-GGUF/embeddinggemma-300M-Q8_0.gguf",
                ),
                "19237057d843b159f6ee8a30655ad999cc4b9bf5cd7da14792679670c2a63eed",
            ),
        ];
        for (identity, expect) in rows {
            assert_eq!(identity.provider_key, expect, "{identity:?}");
        }
    }

    #[test]
    fn spellings_and_secrets_make_equivalent_fingerprints() {
        let of = |addresses: &[&str], pairs: &[(&str, &str)]| {
            let addresses: Vec<String> = addresses.iter().map(|text| (*text).to_owned()).collect();
            EmbedderIdentity::remote(OPENAI, "m", &addresses, &headers(pairs))
        };
        let one = of(&["http://a/v1/", "http://a/v1"], &[("X-Api-Key", "1"), ("X-Org", "o")]);
        let other = of(&["http://a/v1", "http://a/v1/"], &[("X-Api-Key", "2"), ("X-Org", "o")]);
        assert_ne!(one.provider_key, other.provider_key);
        assert_eq!(one.equivalent_keys.len(), 3);
        assert!(other.equivalent_keys.iter().any(|key| one.equivalent_keys.contains(key)));
        let third = of(&["http://a/v1"], &[("X-Org", "another")]);
        assert!(!one.equivalent_keys.contains(&third.provider_key), "another organisation");
        let keyed = of(&["http://a/v1"], &[("Authorization", "Bearer x"), ("X-Org", "another")]);
        assert_eq!(keyed.provider_key, third.provider_key, "the key never counts");
    }

    #[test]
    fn names_are_sorted_as_the_reference_does() {
        let mut names = ["x-org", "X-Org", "Content-Type", "x_a", "x-a", "a1", "ab"];
        names.sort_by_cached_key(|name| collation(name));
        assert_eq!(names, ["a1", "ab", "Content-Type", "x_a", "x-a", "x-org", "X-Org"]);
    }
}
