//! Server-sent events: bytes in any cut in, whole events out.
//!
//! Lines end with LF, CR or CRLF; comments, `id` and `retry` are ignored; several `data` lines join with a newline; a byte
//! order mark at the start is skipped. Memory is bounded by the size cap of one event.

use std::collections::VecDeque;

/// Largest event in bytes, field names aside. No provider sends a tenth of it.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// Event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field.
    pub name: Option<String>,
    /// The `data` lines.
    pub data: String,
}

/// Error in an event stream. The answer can't be trusted from here on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseError {
    /// An event outgrew its cap.
    #[error("the server sent an event of more than {0} bytes")]
    TooLarge(usize),
}

/// The parser. Feed it with [`SseParser::push`], end with [`SseParser::finish`].
#[derive(Debug)]
pub struct SseParser {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    name: Option<String>,
    after_cr: bool,
    first_line: bool,
    max_event: usize,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::with_cap(MAX_EVENT_BYTES)
    }
}

impl SseParser {
    /// A parser whose events may have up to `max_event` bytes.
    pub fn with_cap(max_event: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            name: None,
            after_cr: false,
            first_line: true,
            max_event,
        }
    }

    /// Takes the next bytes and appends the events they complete.
    ///
    /// # Errors
    /// See [`SseError`]; events completed before the fault are appended all the same.
    pub fn push(&mut self, mut bytes: &[u8], out: &mut VecDeque<SseEvent>) -> Result<(), SseError> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')) {
            let (head, tail) = bytes.split_at(end);
            self.grow_line(head)?;
            self.end_line(out);
            bytes = match tail {
                [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
                [b'\r', rest @ ..] => {
                    self.after_cr = rest.is_empty();
                    rest
                }
                _ => tail,
            };
        }
        self.grow_line(bytes)
    }

    /// Ends the stream. An event without its closing blank line is handed out too: some servers forget it after the
    /// last one. It may be cut anywhere.
    ///
    /// # Errors
    /// See [`SseError`].
    pub fn finish(mut self) -> Result<Option<SseEvent>, SseError> {
        let mut out = VecDeque::new();
        if !self.line.is_empty() {
            self.end_line(&mut out);
        }
        self.dispatch(&mut out);
        Ok(out.pop_front())
    }

    fn grow_line(&mut self, bytes: &[u8]) -> Result<(), SseError> {
        if self.line.len() + self.data.len() + bytes.len() > self.max_event {
            return Err(SseError::TooLarge(self.max_event));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, out: &mut VecDeque<SseEvent>) {
        let mut line = std::mem::take(&mut self.line);
        let body = if std::mem::take(&mut self.first_line) {
            line.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(&line)
        } else {
            line.as_slice()
        };
        if body.is_empty() {
            self.dispatch(out);
        } else {
            self.field(body);
        }
        // Keep the allocation for the next line.
        line.clear();
        self.line = line;
    }

    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let (name, rest) = line.split_at(colon);
        let value = rest.strip_prefix(b":").unwrap_or(rest);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.data.extend_from_slice(value);
                self.has_data = true;
            }
            b"event" => {
                let name = String::from_utf8_lossy(value).into_owned();
                self.name = Some(name).filter(|name| !name.is_empty());
            }
            // Comments (empty name), `id`, `retry` and fields of the future.
            _ => {}
        }
    }

    fn dispatch(&mut self, out: &mut VecDeque<SseEvent>) {
        let name = self.name.take();
        if std::mem::take(&mut self.has_data) {
            let data = lossy(std::mem::take(&mut self.data));
            out.push_back(SseEvent { name, data });
        }
    }
}

/// Decodes UTF-8 as clients in JavaScript do: U+FFFD takes the place of what is none. A server that
/// cuts a text within a character still gave an answer.
pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(chunks: &[&[u8]]) -> Result<Vec<(Option<String>, String)>, SseError> {
        let mut parser = SseParser::with_cap(256);
        let mut out = VecDeque::new();
        for chunk in chunks {
            parser.push(chunk, &mut out)?;
        }
        out.extend(parser.finish()?);
        Ok(out.into_iter().map(|event| (event.name, event.data)).collect())
    }

    fn check(input: &str, expect: &[(&str, &str)]) {
        let expect: Vec<_> = expect
            .iter()
            .map(|(name, data)| (Some((*name).to_owned()).filter(|n| !n.is_empty()), (*data).to_owned()))
            .collect();
        assert_eq!(parse(&[input.as_bytes()]).unwrap(), expect, "{input:?}");
        for cut in 0..=input.len() {
            let (a, b) = input.as_bytes().split_at(cut);
            assert_eq!(parse(&[a, b]).unwrap(), expect, "{input:?} cut at {cut}");
        }
    }

    #[test]
    fn events_parse_the_same_wherever_they_are_cut() {
        check("data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]);
        check("data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]);
        check("event: x\ndata:one\ndata: two\n\n", &[("x", "one\ntwo")]);
        check(": hello\n\nid: 7\nretry: 9\ndata: a\n\n", &[("", "a")]);
        check("\u{feff}data: a\n\n", &[("", "a")]);
        check("data: grüße 🦞\n\n", &[("", "grüße 🦞")]);
        check("data\n\ndata:\n\n", &[("", ""), ("", "")]);
        check("event: lost\n\ndata: a\n\n", &[("", "a")]);
        check("data: a\n\ndata: [DONE]", &[("", "a"), ("", "[DONE]")]);
        check("data:  two spaces\n\n", &[("", " two spaces")]);
        check("novel: x\ndata: a\n\n", &[("", "a")]);
        check("", &[]);
    }

    #[test]
    fn an_event_over_its_cap_is_refused() {
        let long = format!("data: {}\n\n", "x".repeat(300));
        assert_eq!(parse(&[long.as_bytes()]), Err(SseError::TooLarge(256)));
        let many = "data: xxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(20);
        assert_eq!(parse(&[many.as_bytes()]), Err(SseError::TooLarge(256)));
        let comments = format!(": {}\n", "x".repeat(20)).repeat(100);
        assert_eq!(parse(&[comments.as_bytes()]), Ok(vec![]));
    }

    #[test]
    fn bytes_that_are_no_utf8_are_replaced_and_split_characters_are_not() {
        assert_eq!(parse(&[b"data: a\xff\xfe\n\n"]).unwrap(), [(None, "a\u{fffd}\u{fffd}".to_owned())]);
        assert_eq!(parse(&[b"data: \xf0\x9f", b"\xa6\x9e\n\n"]).unwrap(), [(None, "🦞".to_owned())]);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_cut_give_the_same_events(bytes in prop::collection::vec(
            prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b' '), Just(b'd'), any::<u8>()], 0..200),
            cuts in prop::collection::vec(0usize..200, 0..6))
        {
            let whole = parse(&[&bytes]);
            let mut cuts: Vec<_> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(parse(&chunks), whole);
        }
    }
}
