//! Rules about single values of a document and their neighbours, which its structure can't express:
//! what a rule is given, and what rules share.

use serde_json::Value;

use crate::Issue;
use crate::executable::is_safe_executable;

/// Rule about a value: adds what is wrong to a list.
pub(crate) type DocumentRule = fn(&Value, &DocumentPlace<'_>, &mut Vec<Issue>);

/// Place in the document at which a rule is applied.
pub(crate) struct DocumentPlace<'a> {
    /// Dotted path.
    pub(crate) path: String,
    /// The whole document.
    pub(crate) root: &'a Value,
}

/// Requires a name or path of a program that is safe to start.
pub(crate) fn executable(value: &Value, place: &DocumentPlace<'_>, out: &mut Vec<Issue>) {
    if value.as_str().is_some_and(|text| !is_safe_executable(text)) {
        out.push(Issue::new(&place.path, "expected safe executable name or path"));
    }
}

/// True if a key holds non-blank text.
pub(crate) fn has_text(section: &Value, key: &str) -> bool {
    section.get(key).and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty())
}

/// True if an entry of a list of senders stands for everybody.
pub(crate) fn lets_all_in(entry: &Value) -> bool {
    entry.as_str().is_some_and(|entry| entry.trim() == "*")
}
