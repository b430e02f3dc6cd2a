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
