//! Reads the vectors out of an answer, and refuses those that make no sense. Pure.

use serde::Deserialize;
use serde_json::Value;

use super::provider::EmbeddingProvider;
use super::request::TextUse;
use crate::answer::describe_page;
use crate::wire::glimpse;

/// An answer that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WrongAnswer {
    #[error("{0}")]
    NoEmbeddings(String),
    #[error("the server answered {asked} texts with {found} vectors")]
    Count { asked: usize, found: usize },
    #[error("the server's numbers of the vectors are not those of the {asked} texts")]
    Order { asked: usize },
    #[error("the vector of text {text} holds something else than finite numbers")]
    NotFinite { text: usize },
    #[error("the vector of text {text} is empty")]
    Empty { text: usize },
    #[error(
        "the server answers with vectors of {found} dimensions, before with {expected}; its model has changed"
    )]
    Dimensions { expected: usize, found: usize },
    #[error("every vector is zero; the server has no working embedding model")]
    AllZero,
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    index: Option<usize>,
    embedding: Vec<Option<f32>>,
}

#[derive(Deserialize)]
struct GeminiBatch {
    embeddings: Vec<GeminiVector>,
}

#[derive(Deserialize)]
struct GeminiSingle {
    embedding: GeminiVector,
}

#[derive(Deserialize)]
struct GeminiVector {
    values: Vec<Option<f32>>,
}

/// Numbers of a vector; a number that JSON can't write is null.
type RawVector = Vec<Option<f32>>;

/// Returns one vector for each of `asked` texts, in their order.
pub(super) fn vectors(
    provider: EmbeddingProvider,
    of: TextUse,
    body: &[u8],
    asked: usize,
) -> Result<Vec<Vec<f32>>, WrongAnswer> {
    let raw: Vec<RawVector> = match (provider, of) {
        (EmbeddingProvider::Gemini, TextUse::Query) => vec![read::<GeminiSingle>(body)?.embedding.values],
        (EmbeddingProvider::Gemini, TextUse::Documents) => {
            read::<GeminiBatch>(body)?.embeddings.into_iter().map(|vector| vector.values).collect()
        }
        (EmbeddingProvider::OpenAi | EmbeddingProvider::Voyage | EmbeddingProvider::Local, _) => {
            placed(read::<OpenAiAnswer>(body)?.data, asked)?
        }
    };
    if raw.len() != asked {
        return Err(WrongAnswer::Count { asked, found: raw.len() });
    }
    let vectors = raw.into_iter().enumerate().map(|(text, raw)| checked(text, &raw));
    let vectors = vectors.collect::<Result<Vec<_>, _>>()?;
    let dimensions = vectors.first().map(Vec::len);
    if let (Some(expected), Some(other)) = (dimensions, vectors.iter().find(|v| Some(v.len()) != dimensions))
    {
        return Err(WrongAnswer::Dimensions { expected, found: other.len() });
    }
    if vectors.len() > 1 && vectors.iter().flatten().all(|number| *number == 0.0) {
        return Err(WrongAnswer::AllZero);
    }
    Ok(vectors)
}

/// Checks the numbers of one vector.
pub(super) fn checked(text: usize, raw: &[Option<f32>]) -> Result<Vec<f32>, WrongAnswer> {
    if raw.is_empty() {
        return Err(WrongAnswer::Empty { text });
    }
    let finite = |number: &Option<f32>| number.filter(|number| number.is_finite());
    raw.iter().map(finite).collect::<Option<Vec<_>>>().ok_or(WrongAnswer::NotFinite { text })
}

/// Puts vectors in the order of their texts, if the server numbers them.
fn placed(data: Vec<OpenAiVector>, asked: usize) -> Result<Vec<RawVector>, WrongAnswer> {
    if data.len() != asked {
        return Err(WrongAnswer::Count { asked, found: data.len() });
    }
    if data.iter().all(|vector| vector.index.is_none()) {
        return Ok(data.into_iter().map(|vector| vector.embedding).collect());
    }
    let mut places: Vec<Option<RawVector>> = vec![None; asked];
    for OpenAiVector { index, embedding } in data {
        match index.and_then(|index| places.get_mut(index)) {
            Some(place @ None) => *place = Some(embedding),
            Some(Some(_)) | None => return Err(WrongAnswer::Order { asked }),
        }
    }
    places.into_iter().collect::<Option<Vec<_>>>().ok_or(WrongAnswer::Order { asked })
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, WrongAnswer> {
    serde_json::from_slice(body).map_err(|_| WrongAnswer::NoEmbeddings(described(body)))
}

/// Tells what a body is that holds no embeddings.
fn described(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    let error = || serde_json::from_str::<Value>(text).ok()?.get("error").map(Value::to_string);
    match text {
        "" => "the server's answer is empty".to_owned(),
        page if page.starts_with('<') => {
            format!("{}; check remote.baseUrl, which often ends with /v1", describe_page(page))
        }
        _ => match error() {
            Some(error) => glimpse(&error),
            None => format!("the server's answer holds no embeddings: {}", glimpse(text)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn openai(body: &str, asked: usize) -> Result<Vec<Vec<f32>>, WrongAnswer> {
        vectors(EmbeddingProvider::OpenAi, TextUse::Documents, body.as_bytes(), asked)
    }

    fn gemini(of: TextUse, body: &str, asked: usize) -> Result<Vec<Vec<f32>>, WrongAnswer> {
        vectors(EmbeddingProvider::Gemini, of, body.as_bytes(), asked)
    }

    #[test]
    fn vectors_are_put_in_the_order_of_their_texts() {
        let rows = [
            r#"{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[3.5,4]}],"usage":{}}"#,
            r#"{"data":[{"index":1,"embedding":[3.5,4]},{"index":0,"embedding":[1,2]}]}"#,
            r#"{"data":[{"embedding":[1,2]},{"embedding":[3.5,4]}]}"#,
        ];
        for body in rows {
            assert_eq!(openai(body, 2), Ok(vec![vec![1.0, 2.0], vec![3.5, 4.0]]), "{body}");
        }
        let batch = r#"{"embeddings":[{"values":[1,2]},{"values":[3,4]}]}"#;
        assert_eq!(gemini(TextUse::Documents, batch, 2), Ok(vec![vec![1.0, 2.0], vec![3.0, 4.0]]));
        assert_eq!(gemini(TextUse::Query, r#"{"embedding":{"values":[0,0]}}"#, 1), Ok(vec![vec![0.0, 0.0]]));
    }

    #[test]
    fn answers_that_make_no_sense_are_refused() {
        use WrongAnswer::{AllZero, Count, Dimensions, Empty, NotFinite, Order};
        let rows = [
            (r#"{"data":[{"embedding":[1]}]}"#, Count { asked: 2, found: 1 }),
            (r#"{"data":[]}"#, Count { asked: 2, found: 0 }),
            (
                r#"{"data":[{"embedding":[1]},{"embedding":[1]},{"embedding":[1]}]}"#,
                Count { asked: 2, found: 3 },
            ),
            (r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#, Order { asked: 2 }),
            (r#"{"data":[{"index":0,"embedding":[1]},{"index":7,"embedding":[1]}]}"#, Order { asked: 2 }),
            (r#"{"data":[{"index":0,"embedding":[1]},{"embedding":[1]}]}"#, Order { asked: 2 }),
            (r#"{"data":[{"embedding":[1]},{"embedding":[null]}]}"#, NotFinite { text: 1 }),
            (r#"{"data":[{"embedding":[1e39]},{"embedding":[1]}]}"#, NotFinite { text: 0 }),
            (r#"{"data":[{"embedding":[]},{"embedding":[1]}]}"#, Empty { text: 0 }),
            (r#"{"data":[{"embedding":[1,2]},{"embedding":[1]}]}"#, Dimensions { expected: 2, found: 1 }),
            (r#"{"data":[{"embedding":[0,0]},{"embedding":[0,0]}]}"#, AllZero),
        ];
        for (body, expect) in rows {
            assert_eq!(openai(body, 2), Err(expect), "{body}");
        }
    }

    #[test]
    fn a_body_without_embeddings_is_described() {
        let rows = [
            ("", "is empty"),
            ("<html><head><title>Sign in</title></head>", "a web page titled \"Sign in\""),
            (r#"{"error":{"message":"no model loaded"}}"#, "no model loaded"),
            (r#"{"object":"list"}"#, "holds no embeddings: {\"object\":\"list\"}"),
            (r#"{"data":[{"embedding":"AAAA"}]}"#, "holds no embeddings"),
            (r#"{"data":[{"embedding":[NaN]}]}"#, "holds no embeddings"),
            ("[1,2", "holds no embeddings"),
        ];
        for (body, expect) in rows {
            let found = openai(body, 1).unwrap_err().to_string();
            assert!(found.contains(expect), "{found}");
        }
        assert!(gemini(TextUse::Documents, r#"{"embedding":{"values":[1]}}"#, 1).is_err());
        assert_eq!(
            gemini(TextUse::Documents, r#"{"embeddings":[{"values":[1]}]}"#, 2),
            Err(WrongAnswer::Count { asked: 2, found: 1 })
        );
    }
}
