//! Endpoints of OpenClaw 2026.2.9 that this version does not have. A request for one is answered
//! with that, whatever the method.

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::json;

use super::http::{json_response, text_response};

/// Endpoints that programs call.
const NOT_YET: &[&str] = &["/v1/chat/completions", "/v1/responses", "/hooks"];
/// Paths that are never the page.
const RESERVED: &[&str] = &["/__openclaw__", "/v1", "/tools", "/metrics"];

/// The answer of an endpoint that is not there; `None` for any other path.
pub(super) fn respond(path: &str) -> Option<Response<Body>> {
    let is_below_any = |prefixes: &[&str]| {
        let rests = prefixes.iter().filter_map(|prefix| path.strip_prefix(prefix));
        rests.into_iter().any(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if is_below_any(NOT_YET) {
        let message = "not implemented yet in this version";
        let told = json!({"error": {"message": message, "type": "not_implemented"}});
        return Some(json_response(StatusCode::NOT_IMPLEMENTED, &told));
    }
    is_below_any(RESERVED).then(|| text_response(StatusCode::NOT_FOUND, "Not Found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_says_so() {
        let rows = [
            ("/v1/chat/completions", Some(501)),
            ("/v1/responses", Some(501)),
            ("/hooks/wake", Some(501)),
            ("/hooks", Some(501)),
            ("/v1/models", Some(404)),
            ("/metrics", Some(404)),
            ("/hooksite", None),
            ("/v12", None),
            ("/", None),
            ("/chat", None),
        ];
        for (path, expect) in rows {
            assert_eq!(respond(path).map(|response| response.status().as_u16()), expect, "{path}");
        }
    }
}
