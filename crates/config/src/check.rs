//! Validation of a document as a config (spec `config.md` §4).
//!
//! [`structure`] checks a document against [`schema`] ([`choices`] says what would have fitted), [`rules`] what a JSON Schema can't say about single values and neighbours, [`whole`] what
//! needs the document as a whole, [`ignored`] and [`approvals`] what names something that is not there, [`plugins_off`] which platforms are off though they are set up, [`unused_bot`] which bot is, [`same_account`] which sections are of one account, [`who_is_heard`] which people a
//! platform's policies and lists leave out or let in. Later steps run only when the earlier ones found nothing, as in the reference.

mod approvals;
mod choices;
mod ignored;
mod plugins_off;
mod rules;
mod same_account;
pub(crate) mod schema;
pub(crate) mod structure;
mod unused_bot;
mod who_is_heard;
mod whole;

use serde_json::Value;

use crate::{Environment, Issue, Paths};

/// Errors and warnings about a document.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) issues: Vec<Issue>,
    pub(crate) warnings: Vec<Issue>,
}

/// Checks a document in which includes and variables are already resolved.
pub(crate) fn check(document: &Value, paths: &Paths, env: &Environment) -> Findings {
    let mut issues = structure::check(document);
    issues.extend(rules::check(document, &issues));
    if !issues.is_empty() {
        return Findings { issues, warnings: Vec::new() };
    }
    let mut findings = whole::check(document, paths, env);
    if findings.issues.is_empty() {
        findings.warnings.extend(ignored::check(document, env));
        findings.warnings.extend(approvals::check(document));
        findings.warnings.extend(plugins_off::check(document, env));
        findings.warnings.extend(unused_bot::check(document));
        findings.warnings.extend(same_account::check(document));
        findings.warnings.extend(who_is_heard::check(document));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json5::parse_value;

    #[test]
    fn a_file_that_openclaw_takes_is_taken() {
        let rows = [
            ("{channels: {mattermost: {botToken: 'x', future: true}, 'nextcloud-talk': {baseUrl: 5}}}", ""),
            ("{channels: {feishu: 5, zalo: [], zalouser: null, line: {accounts: 7}}}", ""),
            ("{channels: {matrix: {dmHistoryLimit: 'x'}}}", ""),
            ("{channels: {telegram: {future: 1}}}", "channels.telegram: Unrecognized key: \"future\""),
            ("{channels: {msteams: {future: 1}}}", "channels.msteams: Unrecognized key: \"future\""),
            ("{channels: {bluebubbles: {future: 1}}}", "channels.bluebubbles: Unrecognized key: \"future\""),
            (
                "{agents: {defaults: {heartbeat: {every: ''}}, list: [{id: 'a', heartbeat: {every: ' 5m '}}]}}",
                "",
            ),
            (
                "{agents: {defaults: {heartbeat: {every: ' '}}}}",
                "agents.defaults.heartbeat.every: invalid duration (use ms, s, m, h)",
            ),
            ("{plugins: {allow: [''], deny: [' '], slots: {memory: ''}}}", ""),
            ("{plugins: {slots: {memory: ' None '}}}", ""),
            ("{plugins: {allow: [' nope']}}", "plugins.allow: plugin not found:  nope"),
            ("{'__proto__': 5, env: {vars: {'__proto__': {a: 1}}}, ui: {'__proto__': {}}}", ""),
            ("{agents: {defaults: {models: {'__proto__': 5}}}}", ""),
        ];
        let env = Environment::new([("HOME", "/h")], "/w");
        for (text, expect) in rows {
            let document = parse_value(text).unwrap();
            let found = check(&document, &Paths::resolve(&env), &env).issues;
            let lines: Vec<String> = found.iter().map(Issue::line).collect();
            let typed = crate::Config::from_document(&document, &Paths::resolve(&env), &env, &[]);
            assert_eq!(lines.join("; "), expect, "{text}");
            assert!(typed.is_ok() || !expect.is_empty(), "{text}: {typed:?}");
        }
    }
}
