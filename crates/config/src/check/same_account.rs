//! Names of accounts that are the same once they are normalised: one account, of which the first section in the file counts.

use serde_json::Value;

use super::rules::places;
use crate::{Issue, normalize_account_id};

/// The warnings of a valid document.
pub(super) fn check(document: &Value) -> Vec<Issue> {
    places(document, "channels.*.accounts")
        .into_iter()
        .flat_map(|(path, accounts)| doubled(&path, accounts))
        .collect()
}

fn doubled(path: &str, accounts: &Value) -> Vec<Issue> {
    let names: Vec<(&String, String)> = accounts
        .as_object()
        .into_iter()
        .flat_map(|all| all.keys())
        .map(|name| (name, normalize_account_id(name)))
        .collect();
    let told = names.iter().enumerate().filter_map(|(index, (name, id))| {
        let (first, _) = names.iter().take(index).find(|(_, earlier)| earlier == id)?;
        let text = format!(
            "\"{name}\" is the same account as \"{first}\", whose section comes first and is the one that counts: nothing is taken \
             from this one; give it another name, or take it out"
        );
        Some(Issue::new(format!("{path}.{name}"), text))
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_second_section_of_an_account_is_told_of() {
        let rows: [(Value, &[&str]); 4] = [
            (json!({"telegram": {}}), &[]),
            (json!({"telegram": {"accounts": {"a": {}, "b": {}}}}), &[]),
            (
                json!({"telegram": {"accounts": {"my-bot": {}, "b": {}, "My Bot": {}}}}),
                &["channels.telegram.accounts.My Bot"],
            ),
            (
                json!({"slack": {"accounts": {"Default": {}, " default ": {}, "@@": {}}}}),
                &["channels.slack.accounts. default ", "channels.slack.accounts.@@"],
            ),
        ];
        for (channels, expect) in rows {
            let found = check(&json!({"channels": channels}));
            let paths: Vec<String> = found.into_iter().map(|issue| issue.path).collect();
            assert_eq!(paths, expect, "{channels}");
        }
    }
}
