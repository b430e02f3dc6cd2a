//! The text of one frame, in the parts that it is sent in.

use bytes::Bytes;
use openclaw_protocol::frame::{Frame, Response};
use openclaw_protocol::{Payload, guarded};

/// Text of a frame. The parts before and after the payload differ by client; the payload is shared
/// by all who get it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FrameText {
    pub(crate) opening: Bytes,
    pub(crate) payload: Bytes,
    pub(crate) ending: Bytes,
}

impl FrameText {
    /// A text in one piece.
    pub(crate) fn whole(text: String) -> Self {
        Self { opening: Bytes::new(), payload: text.into(), ending: Bytes::new() }
    }

    /// A response, its payload as it is.
    pub(crate) fn response(response: Response<Payload>) -> Self {
        let Response { id, ok, payload, error } = response;
        let has_payload = payload.is_some();
        // Texts and numbers always have a JSON form.
        let mut opening =
            serde_json::to_string(&Frame::Response(Response { id, ok, payload: None::<()>, error: None }))
                .unwrap_or_default();
        opening.pop();
        if has_payload {
            opening.push_str(r#","payload":"#);
        }
        let error = error.and_then(|error| serde_json::to_string(&error).ok());
        let ending = error.map_or_else(|| "}".to_owned(), |error| format!(r#","error":{error}}}"#));
        let payload = payload.map(|payload| payload.bytes().clone()).unwrap_or_default();
        Self { opening: opening.into(), payload, ending: ending.into() }
    }

    /// Binds `guard` to the text: it is dropped when the payload is.
    pub(crate) fn guarded_by<G: Send + 'static>(self, guard: G) -> Self {
        Self { payload: guarded(self.payload, guard), ..self }
    }

    /// Bytes of it.
    pub(crate) fn len(&self) -> usize {
        self.opening.len() + self.payload.len() + self.ending.len()
    }
}

#[cfg(test)]
impl std::fmt::Display for FrameText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [&self.opening, &self.payload, &self.ending];
        parts.into_iter().try_for_each(|part| f.write_str(str::from_utf8(part).unwrap()))
    }
}

#[cfg(test)]
mod tests {
    use openclaw_protocol::ErrorShape;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_response_is_that_of_the_protocol() {
        let error = || ErrorShape::invalid("a \"b\"");
        let rows = [
            Response::ok("1", json!({"a": [1]})),
            Response::ok("\"2\"", Value::Null),
            Response::failed("3", error()),
            Response {
                id: "4".into(),
                ok: false,
                payload: Some(json!({"runId": "r"})),
                error: Some(error()),
            },
            Response { id: "5".into(), ok: true, payload: None, error: None },
        ];
        for row in rows {
            let Response { id, ok, payload, error } = row.clone();
            let text = FrameText::response(Response { id, ok, payload: payload.map(Payload::from), error });
            let expected = serde_json::to_string(&Frame::Response(row)).unwrap();
            assert_eq!((text.to_string(), text.len()), (expected.clone(), expected.len()));
        }
    }
}
