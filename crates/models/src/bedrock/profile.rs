//! `~/.aws/credentials` and `~/.aws/config`, as far as keys and regions stand in them.

use std::collections::BTreeMap;

/// The settings of one profile, both files together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Profile(BTreeMap<String, String>);

/// Settings that say that the keys come from elsewhere, in a way this version does not have.
const ELSEWHERE: &[&str] = &[
    "sso_session",
    "sso_start_url",
    "role_arn",
    "credential_process",
    "web_identity_token_file",
    "login_session",
];

impl Profile {
    /// Finds a profile: what the credentials file says wins.
    pub(super) fn find(name: &str, credentials: &str, config: &str) -> Option<Self> {
        let in_config = if name == "default" { name.to_owned() } else { format!("profile {name}") };
        let mut found = section(config, &in_config);
        if found.is_none() && name == "default" {
            found = section(config, "profile default");
        }
        let own = section(credentials, name);
        if found.is_none() && own.is_none() {
            return None;
        }
        let mut settings = found.unwrap_or_default();
        settings.extend(own.unwrap_or_default());
        Some(Self(settings))
    }

    /// A setting; blank counts as none.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The setting that sends us elsewhere for the keys.
    pub(super) fn elsewhere(&self) -> Option<&'static str> {
        ELSEWHERE.iter().find(|name| self.get(name).is_some()).copied()
    }
}

/// The settings of a section; nothing when there is none.
fn section(text: &str, wanted: &str) -> Option<BTreeMap<String, String>> {
    let mut found: Option<BTreeMap<String, String>> = None;
    let mut inside = false;
    for line in text.lines() {
        let bare = line.trim();
        if bare.is_empty() || bare.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = bare.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            let words: Vec<&str> = name.split_whitespace().collect();
            inside = words.join(" ") == wanted;
            if inside {
                found.get_or_insert_default();
            }
            continue;
        }
        // Indented lines belong to the setting above them.
        if line.starts_with([' ', '\t']) {
            continue;
        }
        if let (true, Some(settings), Some((name, value))) = (inside, &mut found, bare.split_once('=')) {
            settings.insert(name.trim().to_lowercase(), without_comment(value).to_owned());
        }
    }
    found
}

/// A comment within a line begins after a blank.
fn without_comment(value: &str) -> &str {
    let end = [" #", " ;", "\t#", "\t;"].iter().filter_map(|mark| value.find(mark)).min();
    value.get(..end.unwrap_or(value.len())).unwrap_or(value).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDENTIALS: &str = "# mine\n[default]\naws_access_key_id = AKIA1\naws_secret_access_key=s1 # of work\n\n[ work ]\nAWS_ACCESS_KEY_ID = AKIA2\naws_secret_access_key = a=b/c+d\naws_session_token = t\nregion=\n";
    const CONFIG: &str = "[default]\nregion = eu-west-1\ns3 =\n  max = 3\n  region = no\n[profile work]\nregion = us-west-2\n[profile sso]\nsso_session = x\nregion = eu-north-1\n[work]\nregion = wrong\n";

    fn settings(name: &str) -> Option<Vec<(String, String)>> {
        Profile::find(name, CREDENTIALS, CONFIG)
            .map(|profile| profile.0.into_iter().filter(|(n, _)| n != "s3").collect())
    }

    fn pairs(pairs: &[(&str, &str)]) -> Option<Vec<(String, String)>> {
        Some(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
    }

    #[test]
    fn both_files_are_read_as_awss_tools_read_them() {
        assert_eq!(
            settings("default"),
            pairs(&[
                ("aws_access_key_id", "AKIA1"),
                ("aws_secret_access_key", "s1"),
                ("region", "eu-west-1")
            ])
        );
        assert_eq!(
            settings("work"),
            pairs(&[
                ("aws_access_key_id", "AKIA2"),
                ("aws_secret_access_key", "a=b/c+d"),
                ("aws_session_token", "t"),
                ("region", "")
            ])
        );
        assert_eq!(settings("sso"), pairs(&[("region", "eu-north-1"), ("sso_session", "x")]));
        assert_eq!(settings("gone"), None);
        let sso = Profile::find("sso", CREDENTIALS, CONFIG).unwrap();
        assert_eq!((sso.elsewhere(), sso.get("region")), (Some("sso_session"), Some("eu-north-1")));
        assert_eq!(
            Profile::find("default", "", "[profile default]\nregion=x").unwrap().get("region"),
            Some("x")
        );
        assert_eq!(Profile::find("default", "[default", ""), Some(Profile::default()), "damage is no crash");
    }
}
