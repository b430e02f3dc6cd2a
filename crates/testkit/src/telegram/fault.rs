//! Faults of calls.

use std::future::Future;

use axum::body::Body;
use axum::http::Response;
use serde_json::json;

use super::{answer, broken_body, refuse};

/// Fault of a call in place of its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFault {
    /// No fault: the call is done and answered, and the next fault is for the call behind it.
    Pass,
    /// 429 with so many seconds to wait.
    Slower(u64),
    /// An error of this status, with these words. Nothing is done.
    Refuse(u16, &'static str),
    /// The connection ends without an answer, and nothing was done.
    Drop,
    /// The call is done, and the connection ends without an answer.
    DoneAndDropped,
    /// The call is done, and the answer breaks off in the middle.
    CutOff,
    /// No answer, for ever; the connection stays open.
    Silence,
    /// Answers with this status and text in place of JSON.
    Garbage(u16, &'static str),
}

impl CallFault {
    pub(super) async fn respond<F, A>(self, act: F) -> Result<Response<Body>, std::io::Error>
    where
        F: FnOnce() -> A,
        A: Future<Output = Response<Body>>,
    {
        let gone = || Err(std::io::Error::other("the script drops the connection"));
        match self {
            Self::Pass => Ok(act().await),
            Self::Slower(seconds) => Ok(answer(
                429,
                &json!({
                    "ok": false,
                    "error_code": 429,
                    "description": format!("Too Many Requests: retry after {seconds}"),
                    "parameters": {"retry_after": seconds},
                }),
            )),
            Self::Refuse(status, words) => Ok(refuse(status, words)),
            Self::Drop => gone(),
            Self::DoneAndDropped => {
                act().await;
                gone()
            }
            Self::CutOff => {
                act().await;
                Ok(Response::new(broken_body("{\"ok\":true,\"resul")))
            }
            Self::Silence => std::future::pending().await,
            Self::Garbage(status, text) => {
                let mut response = answer(status, &json!(null));
                *response.body_mut() = Body::from(text);
                Ok(response)
            }
        }
    }
}
