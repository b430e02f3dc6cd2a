//! Forms, as bots send them.

use axum::body::Bytes;
use serde_json::{Value, json};

/// A file of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// Form field.
    pub field: String,
    /// File name.
    pub name: String,
    /// MIME type.
    pub mime: String,
    /// Content of the file.
    pub content: Bytes,
}

/// Fields and files.
pub(super) fn read(content_type: &str, body: &Bytes) -> (Value, Vec<Upload>) {
    let boundary = content_type.split("boundary=").nth(1).unwrap_or_default().trim_matches('"');
    let mark = format!("--{boundary}");
    let (mut params, mut uploads) = (json!({}), Vec::new());
    let mut at = 0;
    while let Some(start) = find(body, at, mark.as_bytes()).map(|start| start + mark.len() + 2) {
        let Some(head_end) = find(body, start, b"\r\n\r\n") else { break };
        let Some(end) = find(body, head_end, format!("\r\n{mark}").as_bytes()) else { break };
        let head = String::from_utf8_lossy(&body[start..head_end]).into_owned();
        let content = body.slice(head_end + 4..end);
        let field = quoted(&head, "; name=\"");
        match head.contains("filename=\"") {
            true => {
                let mime = head.lines().find_map(|line| {
                    line.to_lowercase().strip_prefix("content-type:").map(|mime| mime.trim().to_owned())
                });
                let name = quoted(&head, "filename=\"");
                uploads.push(Upload { field, name, mime: mime.unwrap_or_default(), content });
            }
            false => params[field] = value(&String::from_utf8_lossy(&content)),
        }
        at = end + 2;
    }
    (params, uploads)
}

/// Fields of a form without files.
pub(super) fn form(body: &[u8]) -> Value {
    let mut params = json!({});
    for (key, text) in url::form_urlencoded::parse(body) {
        params[key.as_ref()] = value(&text);
    }
    params
}

/// A field: JSON where it is.
pub(super) fn value(text: &str) -> Value {
    let is_json = text.starts_with(['{', '[', '-'])
        || text.starts_with(|c: char| c.is_ascii_digit())
        || matches!(text, "true" | "false");
    let parsed = is_json.then(|| serde_json::from_str(text).ok()).flatten();
    parsed.unwrap_or_else(|| json!(text))
}

fn quoted(head: &str, key: &str) -> String {
    let rest = head.split(key).nth(1).unwrap_or_default();
    rest.split('"').next().unwrap_or_default().to_owned()
}

fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    bytes.get(from..)?.windows(what.len()).position(|window| window == what).map(|at| at + from)
}
