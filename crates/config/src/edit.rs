//! Changing a JSON5 text so that it says something else, touching only what changed.
//!
//! Comments, order, quotes and numbers of everything else stay as the owner wrote them.

use std::ops::Range;

use serde_json::{Map, Value};

use crate::json5::{self, Json5Node, Member, NodeKind, SyntaxError};

const INDENT: &str = "  ";

/// The text with its value changed to `next`.
///
/// # Errors
/// [`SyntaxError`] when the text does not parse; nothing is guessed then.
pub fn edit_text(text: &str, next: &Value) -> Result<String, SyntaxError> {
    let root = json5::parse(text)?;
    let mut edits = Vec::new();
    change(text, &root, next, &mut edits);
    edits.sort_by_key(|edit| edit.range.start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in &edits {
        out.push_str(text.get(at..edit.range.start).unwrap_or_default());
        out.push_str(&edit.text);
        at = edit.range.end.max(at);
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Ok(out)
}

/// The text of a new file.
pub fn new_text(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

struct TextEdit {
    range: Range<usize>,
    text: String,
}

fn change(text: &str, node: &Json5Node, next: &Value, edits: &mut Vec<TextEdit>) {
    if node.to_value() == *next {
        return;
    }
    match (&node.kind, next) {
        (NodeKind::Object(members), Value::Object(map)) if has_unique_keys(members) => {
            change_object(text, node, members, map, edits);
        }
        (NodeKind::Array(items), Value::Array(values)) if items.len() == values.len() => {
            for (item, value) in items.iter().zip(values) {
                change(text, item, value, edits);
            }
        }
        (NodeKind::Array(items), Value::Array(values)) if change_length(text, node, items, values, edits) => {
        }
        _ => edits.push(TextEdit {
            range: node.span.clone(),
            text: pretty(next, &indent_of(text, node.span.start)),
        }),
    }
}

/// A list with items added at its end, or with some items gone; `false` when it changed in another way.
fn change_length(
    text: &str,
    node: &Json5Node,
    items: &[Json5Node],
    values: &[Value],
    edits: &mut Vec<TextEdit>,
) -> bool {
    let old: Vec<Value> = items.iter().map(Json5Node::to_value).collect();
    let parts: Vec<Range<usize>> = items.iter().map(|item| item.span.clone()).collect();
    if let (Some(added), Some(last)) = (values.strip_prefix(old.as_slice()), parts.last()) {
        let is_multiline = is_multiline(text, node);
        let indent = indent_of(text, last.start);
        let written = |value| if is_multiline { pretty(value, &indent) } else { compact(value) };
        insert(text, node, last, &added.iter().map(written).collect::<Vec<_>>(), edits);
        return true;
    }
    let mut wanted = values.iter().peekable();
    let kept: Vec<bool> = old.iter().map(|value| wanted.next_if_eq(&value).is_some()).collect();
    if wanted.peek().is_some() || values.is_empty() {
        return false;
    }
    let gone = removals(text, &parts, &kept, true);
    edits.extend(gone.into_iter().map(|range| TextEdit { range, text: String::new() }));
    true
}

fn has_unique_keys(members: &[Member]) -> bool {
    members
        .iter()
        .enumerate()
        .all(|(at, member)| !members.iter().take(at).any(|other| other.key == member.key))
}

fn change_object(
    text: &str,
    node: &Json5Node,
    members: &[Member],
    next: &Map<String, Value>,
    edits: &mut Vec<TextEdit>,
) {
    let added: Vec<(&String, &Value)> =
        next.iter().filter(|(key, _)| !members.iter().any(|member| member.key == **key)).collect();
    let kept = members.iter().filter(|member| next.contains_key(&member.key)).count();
    if kept == 0 {
        // Nothing to keep in place: the object is written anew.
        let indent = indent_of(text, node.span.start);
        edits
            .push(TextEdit { range: node.span.clone(), text: pretty(&Value::Object(next.clone()), &indent) });
        return;
    }
    let parts: Vec<Range<usize>> = members.iter().map(span_of).collect();
    for member in members {
        if let Some(value) = next.get(&member.key) {
            change(text, &member.value, value, edits);
        }
    }
    let kept: Vec<bool> = members.iter().map(|member| next.contains_key(&member.key)).collect();
    let gone = removals(text, &parts, &kept, added.is_empty());
    edits.extend(gone.into_iter().map(|range| TextEdit { range, text: String::new() }));
    if let Some(last) = members.iter().rfind(|member| next.contains_key(&member.key))
        && !added.is_empty()
    {
        let last = span_of(last);
        let is_multiline = is_multiline(text, node);
        let plain_keys = members.iter().all(|member| !is_quoted(text, &member.key_span));
        let indent = indent_of(text, last.start);
        let written = |(key, value): &(&String, &Value)| {
            let value = if is_multiline { pretty(value, &indent) } else { compact(value) };
            format!("{}: {value}", written_key(key, plain_keys))
        };
        insert(text, node, &last, &added.iter().map(written).collect::<Vec<_>>(), edits);
    }
}

/// The spans of the parts that are not kept, with what belongs to them.
fn removals(text: &str, parts: &[Range<usize>], kept: &[bool], is_end_free: bool) -> Vec<Range<usize>> {
    let tail = kept.iter().rposition(|kept| *kept).map_or(0, |last| last + 1);
    let is_one = parts.len() == tail + 1;
    let gone = kept.iter().enumerate().filter(|(_, kept)| !**kept);
    let mut ranges: Vec<Range<usize>> =
        gone.map(|(at, _)| removal(text, parts, at, is_end_free && is_one)).collect();
    // Several go at the end: what is the last one then loses its comma, unless the old last one had one.
    let has_end_comma = parts.last().is_some_and(|last| comma_after(text, last.end).is_some());
    if is_end_free && !has_end_comma && parts.len() > tail + 1 {
        let before = tail.checked_sub(1).and_then(|last| parts.get(last));
        let comma = before.and_then(|before| comma_after(text, before.end));
        let blanks = |from: usize| {
            let rest = text.get(from..).unwrap_or_default();
            rest.len() - rest.trim_start_matches([' ', '\t']).len()
        };
        let is_beside = |end: usize| parts.get(tail).is_some_and(|part| part.start == end);
        ranges.extend(comma.map(|comma| {
            let end = comma + 1 + blanks(comma + 1);
            comma..if is_beside(end) { end } else { comma + 1 }
        }));
    }
    ranges
}

/// The span of a part with its comma, and with its line when nothing else is on it. `is_end_free`: nothing will be put
/// after it, so that the comma before a last part can go too.
fn removal(text: &str, parts: &[Range<usize>], at: usize, is_end_free: bool) -> Range<usize> {
    let Some(part) = parts.get(at) else { return 0..0 };
    let mut start = part.start;
    let mut end = part.end;
    match comma_after(text, end) {
        Some(comma) => end = comma + 1,
        None if !is_end_free => {}
        None => {
            // The last part without a comma: the one before it loses its comma.
            let before = at.checked_sub(1).and_then(|previous| parts.get(previous));
            if let Some(comma) = before.and_then(|previous| comma_after(text, previous.end)) {
                let between = text.get(comma + 1..start).unwrap_or_default();
                if between.trim().is_empty() {
                    return comma..end;
                }
            }
        }
    }
    let line_start = text.get(..start).unwrap_or_default().rfind('\n').map_or(0, |newline| newline + 1);
    let before_is_blank = text.get(line_start..start).is_some_and(|space| space.trim().is_empty());
    let rest = text.get(end..).unwrap_or_default();
    let line_rest = rest.split('\n').next().unwrap_or_default();
    if before_is_blank && line_start > 0 && line_rest.trim().is_empty() && rest.len() > line_rest.len() {
        start = line_start;
        end += line_rest.len() + 1;
    } else {
        end += line_rest.len() - line_rest.trim_start_matches([' ', '\t']).len();
    }
    start..end
}

fn is_multiline(text: &str, node: &Json5Node) -> bool {
    text.get(node.span.clone()).is_some_and(|body| body.contains('\n'))
}

/// Puts entries behind the last one that stays.
fn insert(text: &str, node: &Json5Node, last: &Range<usize>, entries: &[String], edits: &mut Vec<TextEdit>) {
    let value_end = last.end;
    let comma = comma_after(text, value_end);
    // Behind a member whose follower is removed the comma only parts the two.
    let closes = end_of_last(node) == Some(value_end);
    if !is_multiline(text, node) {
        let joined = entries.join(", ");
        let edit = match comma.filter(|_| !closes) {
            Some(comma) => TextEdit { range: comma + 1..comma + 1, text: format!(" {joined}") },
            None => TextEdit { range: value_end..value_end, text: format!(", {joined}") },
        };
        edits.push(edit);
        return;
    }
    let indent = indent_of(text, last.start);
    let after = comma.map_or(value_end, |comma| comma + 1);
    let at = comment_end(text, after, node.span.end);
    let joined = entries.join(&format!(",\n{indent}"));
    let closing_comma = if comma.is_some() && closes { "," } else { "" };
    if comma.is_none() {
        edits.push(TextEdit { range: value_end..value_end, text: ",".to_owned() });
    }
    edits.push(TextEdit { range: at..at, text: format!("\n{indent}{joined}{closing_comma}") });
}

/// End of the last item or member of a node.
fn end_of_last(node: &Json5Node) -> Option<usize> {
    match &node.kind {
        NodeKind::Object(members) => members.last().map(|member| member.value.span.end),
        NodeKind::Array(items) => items.last().map(|item| item.span.end),
        NodeKind::Scalar(_) => None,
    }
}

/// The end of a comment that follows on the same line, so that it stays with what it comments.
fn comment_end(text: &str, at: usize, limit: usize) -> usize {
    let line = text.get(at..limit).unwrap_or_default().split('\n').next().unwrap_or_default();
    if line.trim_start().starts_with("//") { at + line.trim_end_matches('\r').len() } else { at }
}

/// The place of the comma that follows, comments skipped.
fn comma_after(text: &str, mut at: usize) -> Option<usize> {
    loop {
        let rest = text.get(at..)?;
        let skipped = rest.trim_start();
        at += rest.len() - skipped.len();
        if skipped.starts_with(',') {
            return Some(at);
        }
        let length = match skipped.get(..2) {
            Some("//") => skipped.find('\n')?,
            Some("/*") => skipped.find("*/")? + 2,
            _ => return None,
        };
        at += length;
    }
}

/// Span of a member, key and value.
fn span_of(member: &Member) -> Range<usize> {
    member.key_span.start..member.value.span.end
}

fn is_quoted(text: &str, span: &Range<usize>) -> bool {
    text.get(span.clone()).is_some_and(|key| key.starts_with(['"', '\'']))
}

fn written_key(key: &str, plain_keys: bool) -> String {
    let is_name = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$');
    if plain_keys && is_name { key.to_owned() } else { Value::String(key.to_owned()).to_string() }
}

fn compact(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let entries: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", Value::String(key.clone()), compact(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}

fn pretty(value: &Value, indent: &str) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace('\n', &format!("\n{indent}"))
}

/// The white space at the start of the line of a place.
fn indent_of(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let indent: String = line.chars().take_while(|c| *c == ' ' || *c == '\t').collect();
    if indent.is_empty() && line.trim().is_empty() && !before.is_empty() { INDENT.to_owned() } else { indent }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(before: &str, next: &Value, after: &str) {
        assert_eq!(edit_text(before, next).unwrap(), after);
    }

    #[test]
    fn a_list_that_grows_keeps_its_comments() {
        let before = "{\n  // who answers\n  list: [\n    // the first\n    { id: 'a' }, // mine\n  ],\n}\n";
        let after = "{\n  // who answers\n  list: [\n    // the first\n    { id: 'a' }, // mine\n    {\n      \"id\": \"b\"\n    },\n  ],\n}\n";
        check(before, &json!({"list": [{"id": "a"}, {"id": "b"}]}), after);
        check("{ list: [1, 2] }", &json!({"list": [1, 2, 3]}), "{ list: [1, 2, 3] }");
        check("{ list: [] }", &json!({"list": [3]}), "{ list: [\n  3\n] }");
    }

    /// OpenClaw writes strict JSON, and scripts read it.
    #[test]
    fn strict_json_stays_strict_whatever_takes_the_place_of_what() {
        let all = ["a", "b", "c", "d"];
        let object = |keys: &[&str]| {
            let members = keys.iter().map(|key| ((*key).to_owned(), json!({"x": 1})));
            Value::Object(members.collect())
        };
        for before in 1_u8..16 {
            for after in 0_u8..16 {
                let of = |bits: u8| -> Vec<&str> {
                    all.iter()
                        .enumerate()
                        .filter(|(at, _)| bits & (1 << at) != 0)
                        .map(|(_, key)| *key)
                        .collect()
                };
                let (old, next) =
                    (json!({"groups": object(&of(before))}), json!({"groups": object(&of(after))}));
                for text in [serde_json::to_string_pretty(&old).unwrap(), compact(&old)] {
                    let edited = edit_text(&text, &next).unwrap();
                    let read: Result<Value, _> = serde_json::from_str(&edited);
                    assert_eq!(read.unwrap_or_else(|error| panic!("{error}: {edited}")), next, "{text}");
                }
            }
        }
    }

    #[test]
    fn a_list_that_shrinks_keeps_what_stays_as_it_was() {
        let before = "{\n  list: [\n    { id: 'a' }, // first\n    { id: 'b' },\n    // third\n    { id: 'c' }\n  ]\n}\n";
        let after = "{\n  list: [\n    { id: 'a' }, // first\n    // third\n    { id: 'c' }\n  ]\n}\n";
        check(before, &json!({"list": [{"id": "a"}, {"id": "c"}]}), after);
        check("{ list: [1, 2, 3] }", &json!({"list": [1, 2]}), "{ list: [1, 2] }");
        check("{ list: [1, 2, 3] }", &json!({"list": [3]}), "{ list: [3] }");
        check("{ list: [1, 2, 3] }", &json!({"list": [1]}), "{ list: [1] }");
        check("{ list: [1, 2, 3] }", &json!({"list": [2, 1]}), "{ list: [\n  2,\n  1\n] }");
    }

    #[test]
    fn what_is_left_of_json_is_json() {
        let before = "{\n  \"a\": 1,\n  \"b\": {\n    \"x\": 1\n  },\n  \"c\": 3\n}\n";
        check(before, &json!({"a": 1}), "{\n  \"a\": 1\n}\n");
        check(before, &json!({"a": 1, "b": {"x": 1}}), "{\n  \"a\": 1,\n  \"b\": {\n    \"x\": 1\n  }\n}\n");
        let noted = "{\n  a: 1, // one\n  b: 2, // two\n  c: 3, // three\n}\n";
        check(noted, &json!({"a": 1}), "{\n  a: 1, // one\n  // two\n  // three\n}\n");
    }

    proptest! {
        #[test]
        fn members_that_go_leave_json_behind(kept in prop::collection::vec(any::<bool>(), 1..7), is_tall in any::<bool>()) {
            let map = |all: bool| -> Map<String, Value> {
                let pairs = kept.iter().enumerate().filter(|(_, kept)| all || **kept);
                pairs.map(|(at, _)| (format!("k{at}"), json!(at))).collect()
            };
            let before = Value::Object(map(true));
            let before = if is_tall { serde_json::to_string_pretty(&before).unwrap() } else { before.to_string() };
            let next = Value::Object(map(false));
            let after = edit_text(&before, &next).unwrap();
            let read: Value = serde_json::from_str(&after).map_err(|error| TestCaseError::fail(format!("{error}: {after}")))?;
            prop_assert_eq!(read, next, "{}", after);
        }

        #[test]
        fn a_list_written_by_hand_says_what_was_asked(
            items in prop::collection::vec((0..3_u8, 0..5_usize, any::<bool>()), 0..6),
            more in prop::collection::vec(0..3_u8, 0..3),
            is_tall in any::<bool>(), closing_comma in any::<bool>(),
        ) {
            const NOTES: [&str; 5] = ["", " // note, with: comma ]", " /* , */", "", ""];
            let entry = |(at, (value, note, _)): (usize, &(u8, usize, bool))| {
                let comma = if at + 1 < items.len() || closing_comma { "," } else { "" };
                if is_tall { format!("  {value}{comma}{}\n", NOTES[*note]) } else { format!(" {value}{comma}") }
            };
            let body: String = items.iter().enumerate().map(entry).collect();
            let text = if is_tall { format!("[\n{body}]") } else { format!("[{body} ]") };
            let kept = items.iter().filter(|(_, _, kept)| *kept).map(|(value, _, _)| *value);
            let next: Value = kept.chain(more).collect::<Vec<_>>().into();
            let edited = edit_text(&text, &next);
            prop_assume!(!items.is_empty() || !closing_comma);
            let edited = edited.unwrap();
            prop_assert_eq!(json5::parse_value(&edited).unwrap(), next, "{}\n->\n{}", text, edited);
        }
    }
}
