//! Requests as the providers want them (spec `memory.md` §12.2): addresses and bodies. Pure.

use serde_json::{Value, json};

use super::provider::EmbeddingProvider;

/// Use of texts: some models embed questions and documents differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextUse {
    Query,
    Documents,
}

impl TextUse {
    /// Voyage's `input_type`.
    fn input_type(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Documents => "document",
        }
    }

    /// Gemini's `taskType`.
    pub(super) fn task_type(self) -> &'static str {
        match self {
            Self::Query => "RETRIEVAL_QUERY",
            Self::Documents => "RETRIEVAL_DOCUMENT",
        }
    }
}

/// The path of a request behind the address of the API.
pub(super) fn path(provider: EmbeddingProvider, model: &str, of: TextUse) -> String {
    match (provider, of) {
        (EmbeddingProvider::Gemini, TextUse::Query) => format!("/models/{model}:embedContent"),
        (EmbeddingProvider::Gemini, TextUse::Documents) => format!("/models/{model}:batchEmbedContents"),
        (EmbeddingProvider::OpenAi | EmbeddingProvider::Voyage | EmbeddingProvider::Local, _) => {
            "/embeddings".to_owned()
        }
    }
}

/// The body of a request, its keys in the order of OpenClaw's.
pub(super) fn body<T: AsRef<str>>(
    provider: EmbeddingProvider,
    model: &str,
    of: TextUse,
    texts: &[T],
) -> Value {
    let input = || texts.iter().map(AsRef::as_ref).collect::<Vec<&str>>();
    match (provider, of) {
        (EmbeddingProvider::OpenAi | EmbeddingProvider::Local, _) => {
            json!({"model": model, "input": input()})
        }
        (EmbeddingProvider::Voyage, _) => {
            json!({"model": model, "input": input(), "input_type": of.input_type()})
        }
        (EmbeddingProvider::Gemini, TextUse::Query) => {
            let text = texts.first().map(AsRef::as_ref).unwrap_or_default();
            json!({"content": content(text), "taskType": of.task_type()})
        }
        (EmbeddingProvider::Gemini, TextUse::Documents) => {
            let request = |text: &str| {
                json!({"model": format!("models/{model}"), "content": content(text),
                    "taskType": of.task_type()})
            };
            json!({"requests": input().into_iter().map(request).collect::<Vec<_>>()})
        }
    }
}

/// A text as Gemini has it.
pub(super) fn content(text: &str) -> Value {
    json!({"parts": [{"text": text}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requests of the golden file `memory-http.json`.
    #[test]
    fn requests_are_those_of_the_reference() {
        use EmbeddingProvider::{Gemini, OpenAi, Voyage};
        use TextUse::{Documents, Query};
        let rows = [
            (
                (OpenAi, "fake-embed-64", Query, vec!["apple trees"]),
                "/embeddings",
                r#"{"model":"fake-embed-64","input":["apple trees"]}"#,
            ),
            (
                (OpenAi, "fake-embed-64", Documents, vec!["# a\n", "会议"]),
                "/embeddings",
                r##"{"model":"fake-embed-64","input":["# a\n","会议"]}"##,
            ),
            (
                (Voyage, "voyage-4-large", Documents, vec!["a"]),
                "/embeddings",
                r#"{"model":"voyage-4-large","input":["a"],"input_type":"document"}"#,
            ),
            (
                (Voyage, "voyage-4-large", Query, vec!["apple trees"]),
                "/embeddings",
                r#"{"model":"voyage-4-large","input":["apple trees"],"input_type":"query"}"#,
            ),
            (
                (Gemini, "gemini-embedding-001", Query, vec!["apple trees"]),
                "/models/gemini-embedding-001:embedContent",
                r#"{"content":{"parts":[{"text":"apple trees"}]},"taskType":"RETRIEVAL_QUERY"}"#,
            ),
            (
                (Gemini, "gemini-embedding-001", Documents, vec!["a", "b"]),
                "/models/gemini-embedding-001:batchEmbedContents",
                concat!(
                    r#"{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"a"}]},"#,
                    r#""taskType":"RETRIEVAL_DOCUMENT"},{"model":"models/gemini-embedding-001","content":"#,
                    r#"{"parts":[{"text":"b"}]},"taskType":"RETRIEVAL_DOCUMENT"}]}"#
                ),
            ),
        ];
        for ((provider, model, of, texts), expect_path, expect) in rows {
            assert_eq!(path(provider, model, of), expect_path);
            assert_eq!(body(provider, model, of, &texts).to_string(), expect);
        }
    }
}
