//! Credentials for Bedrock: the variables and files that AWS's own tools use (spec `models.md`
//! §2.4, §4.6).
//!
//! Keys that must be fetched (SSO, roles, AWS machines) are not supported. A profile that uses them
//! is named in an error.

use std::path::PathBuf;

use secrecy::SecretString;
use serde_json::{Map, Value, json};

use super::place::DEFAULT_REGION;
use super::profile::Profile;
use crate::variables::Variables;

/// Sends requests unsigned, as some gateways want them.
const SKIP_AUTH: &str = "AWS_BEDROCK_SKIP_AUTH";
/// An API key of Bedrock.
pub(crate) const BEARER: &str = "AWS_BEARER_TOKEN_BEDROCK";
const KEY_ID: &str = "AWS_ACCESS_KEY_ID";
const SECRET: &str = "AWS_SECRET_ACCESS_KEY";
const SESSION: &str = "AWS_SESSION_TOKEN";
pub(crate) const PROFILE: &str = "AWS_PROFILE";
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];
/// Largest file that is read.
const MAX_FILE: usize = 1024 * 1024;

/// A key for Bedrock.
#[derive(Debug, Clone)]
pub(crate) struct AwsKey {
    /// As [`crate::provider_key::ProviderKey`] reads it.
    pub(crate) secret: SecretString,
    /// Part of the key that may be shown masked: the part that is not secret by itself, or the
    /// token.
    pub(crate) shown: SecretString,
    /// `env: NAME`, or `aws-sdk default chain` (spec `models.md` §2.4).
    pub(crate) source: String,
}

/// Reason why a profile gives no keys. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AwsError {
    /// The profile is in neither file.
    #[error(
        "AWS profile \"{0}\" is neither in the credentials file nor in the config file; check AWS_PROFILE"
    )]
    NoProfile(String),
    /// The keys of the profile must be fetched elsewhere.
    #[error(
        "AWS profile \"{profile}\" gets its keys by {by}, which is not supported yet; use access keys or set \
         AWS_BEARER_TOKEN_BEDROCK"
    )]
    Elsewhere {
        /// The profile.
        profile: String,
        /// The setting that says so.
        by: &'static str,
    },
    /// The profile has no keys.
    #[error("AWS profile \"{0}\" holds no aws_access_key_id and aws_secret_access_key")]
    NoKeys(String),
}

/// The variable that would give a key; also one that only names a profile.
pub(crate) fn variable(variables: &Variables) -> Option<&'static str> {
    if skips(variables) {
        return Some(SKIP_AUTH);
    }
    if variables.get(BEARER).is_some() {
        return Some(BEARER);
    }
    if variables.get(KEY_ID).is_some() && variables.get(SECRET).is_some() {
        return Some(KEY_ID);
    }
    variables.get(PROFILE).map(|_| PROFILE)
}

/// The key of this environment, if there is one. Reads the files when no variable holds a key.
pub(crate) async fn find(variables: &Variables) -> Result<Option<AwsKey>, AwsError> {
    let profile = profile(variables).await;
    let region = variables.first(REGIONS).map(|(_, region)| region);
    let region = region.or_else(|| profile.as_ref()?.get("region")).unwrap_or(DEFAULT_REGION);
    let env = |name: &str| format!("env: {name}");
    if skips(variables) {
        return Ok(Some(AwsKey::new(&[("skipAuth", "1")], region, "", env(SKIP_AUTH))));
    }
    if let Some(token) = variables.get(BEARER) {
        return Ok(Some(AwsKey::new(&[("token", token)], region, token, env(BEARER))));
    }
    if let (Some(id), Some(secret)) = (variables.get(KEY_ID), variables.get(SECRET)) {
        return Ok(Some(AwsKey::signing(id, secret, variables.get(SESSION), region, env(KEY_ID))));
    }
    let named = variables.get(PROFILE);
    let name = named.unwrap_or("default");
    let Some(profile) = &profile else {
        return if named.is_some() { Err(AwsError::NoProfile(name.to_owned())) } else { Ok(None) };
    };
    if let (Some(id), Some(secret)) = (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key"))
    {
        let source = named.map_or_else(|| "aws-sdk default chain".to_owned(), |_| env(PROFILE));
        return Ok(Some(AwsKey::signing(id, secret, profile.get("aws_session_token"), region, source)));
    }
    match profile.elsewhere() {
        Some(by) => Err(AwsError::Elsewhere { profile: name.to_owned(), by }),
        // The default profile may be there for its region alone.
        None if named.is_none() => Ok(None),
        None => Err(AwsError::NoKeys(name.to_owned())),
    }
}

fn skips(variables: &Variables) -> bool {
    variables.get(SKIP_AUTH) == Some("1")
}

async fn profile(variables: &Variables) -> Option<Profile> {
    let file = |variable: &str, name: &str| match variables.get(variable) {
        Some(path) => Some(PathBuf::from(path)),
        None => Some(PathBuf::from(variables.get("HOME")?).join(".aws").join(name)),
    };
    let credentials = read(file("AWS_SHARED_CREDENTIALS_FILE", "credentials")).await;
    let config = read(file("AWS_CONFIG_FILE", "config")).await;
    Profile::find(variables.get(PROFILE).unwrap_or("default"), &credentials, &config)
}

/// A file that can't be read is as good as none: then nothing is found in it, and that is said.
async fn read(path: Option<PathBuf>) -> String {
    let Some(path) = path else { return String::new() };
    let bytes = tokio::fs::read(path).await.unwrap_or_default();
    if bytes.len() > MAX_FILE { String::new() } else { String::from_utf8_lossy(&bytes).into_owned() }
}

impl AwsKey {
    fn new(parts: &[(&str, &str)], region: &str, shown: &str, source: String) -> Self {
        let mut fields: Map<String, Value> =
            parts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        fields.insert("region".to_owned(), json!(region));
        let secret = SecretString::from(Value::Object(fields).to_string());
        Self { secret, shown: SecretString::from(shown), source }
    }

    fn signing(id: &str, secret: &str, session: Option<&str>, region: &str, source: String) -> Self {
        let mut parts = vec![("accessKeyId", id), ("secretAccessKey", secret)];
        parts.extend(session.map(|session| ("sessionToken", session)));
        Self::new(&parts, region, id, source)
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    type Found = Result<Option<(Value, String)>, AwsError>;

    async fn found(pairs: &[(&str, &str)], files: Option<(&str, &str)>) -> Found {
        let home = tempfile::tempdir().unwrap();
        let mut variables: Vec<(&str, &str)> = pairs.to_vec();
        if let Some((credentials, config)) = files {
            let dir = home.path().join(".aws");
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join("credentials"), credentials).unwrap();
            std::fs::write(dir.join("config"), config).unwrap();
        }
        let at = home.path().display().to_string();
        variables.push(("HOME", &at));
        let key = find(&variables.into_iter().collect()).await?;
        Ok(key.map(|key| (serde_json::from_str(key.secret.expose_secret()).unwrap(), key.source)))
    }

    #[expect(clippy::unnecessary_wraps, reason = "reads better at the call")]
    fn key(fields: Value, source: &str) -> Found {
        Ok(Some((fields, source.to_owned())))
    }

    #[tokio::test]
    async fn variables_come_first_in_the_order_of_the_spec() {
        let keys = [("AWS_ACCESS_KEY_ID", "AKIA"), ("AWS_SECRET_ACCESS_KEY", "s")];
        let plain = json!({"accessKeyId": "AKIA", "secretAccessKey": "s", "region": "us-east-1"});
        assert_eq!(found(&keys, None).await, key(plain, "env: AWS_ACCESS_KEY_ID"));
        let mut all = keys.to_vec();
        all.extend([
            ("AWS_SESSION_TOKEN", "t"),
            ("AWS_REGION", "eu-west-1"),
            ("AWS_DEFAULT_REGION", "x"),
            ("AWS_PROFILE", "gone"),
        ]);
        let temporary = json!({"accessKeyId": "AKIA", "secretAccessKey": "s", "sessionToken": "t", "region": "eu-west-1"});
        assert_eq!(found(&all, None).await, key(temporary, "env: AWS_ACCESS_KEY_ID"));
        all.push(("AWS_BEARER_TOKEN_BEDROCK", "b"));
        assert_eq!(
            found(&all, None).await,
            key(json!({"token": "b", "region": "eu-west-1"}), "env: AWS_BEARER_TOKEN_BEDROCK")
        );
        all.push(("AWS_BEDROCK_SKIP_AUTH", "1"));
        assert_eq!(
            found(&all, None).await,
            key(json!({"skipAuth": "1", "region": "eu-west-1"}), "env: AWS_BEDROCK_SKIP_AUTH")
        );
        assert_eq!(
            found(&[("AWS_BEDROCK_SKIP_AUTH", "0"), ("AWS_ACCESS_KEY_ID", "AKIA")], None).await,
            Ok(None)
        );
    }

    #[tokio::test]
    async fn files_are_read_by_profile() {
        let credentials = "[default]\naws_access_key_id=A1\naws_secret_access_key=s1\n[work]\naws_access_key_id=A2\naws_secret_access_key=s2\naws_session_token=t2\n";
        let config =
            "[default]\nregion=eu-west-1\n[profile sso]\nsso_session=corp\n[profile bare]\nregion=x\n";
        let files = Some((credentials, config));
        let default = json!({"accessKeyId": "A1", "secretAccessKey": "s1", "region": "eu-west-1"});
        assert_eq!(found(&[], files).await, key(default, "aws-sdk default chain"));
        let work = json!({"accessKeyId": "A2", "secretAccessKey": "s2", "sessionToken": "t2", "region": "us-west-2"});
        assert_eq!(
            found(&[("AWS_PROFILE", "work"), ("AWS_DEFAULT_REGION", "us-west-2")], files).await,
            key(work, "env: AWS_PROFILE")
        );
        let sso = AwsError::Elsewhere { profile: "sso".to_owned(), by: "sso_session" };
        assert_eq!(found(&[("AWS_PROFILE", "sso")], files).await, Err(sso));
        assert_eq!(found(&[("AWS_PROFILE", "bare")], files).await, Err(AwsError::NoKeys("bare".to_owned())));
        assert_eq!(
            found(&[("AWS_PROFILE", "gone")], files).await,
            Err(AwsError::NoProfile("gone".to_owned()))
        );
        assert_eq!(found(&[], Some(("", "[default]\nregion=x"))).await, Ok(None));
        assert_eq!(found(&[], None).await, Ok(None));
    }

    #[tokio::test]
    async fn the_files_may_lie_elsewhere() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        std::fs::write(&path, "[default]\naws_access_key_id=A\naws_secret_access_key=s").unwrap();
        let at = path.display().to_string();
        let (fields, _) = found(&[("AWS_SHARED_CREDENTIALS_FILE", &at)], None).await.unwrap().unwrap();
        assert_eq!(fields["accessKeyId"], "A");
    }
}
