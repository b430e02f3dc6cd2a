//! The embeddings endpoint.

use serde_json::{Value, json};

/// Deterministic vectors: the same text has the same one, different texts have different ones, all have length 1.
pub(super) fn embeddings(body: &Value, dimensions: usize) -> Value {
    let inputs: Vec<&str> = match body.get("input") {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(texts)) => texts.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let data: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(at, text)| json!({"object": "embedding", "index": at, "embedding": vector(text, dimensions)}))
        .collect();
    let tokens: usize = inputs.iter().map(|text| text.len().div_ceil(4)).sum();
    json!({"object": "list", "data": data, "model": body.get("model"),
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens}})
}

fn vector(text: &str, dimensions: usize) -> Vec<f64> {
    let mut values = vec![0.0_f64; dimensions.max(1)];
    for word in text.to_lowercase().split_whitespace() {
        // FNV-1a: small, and the same on every machine.
        let hash = word
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        let at = usize::try_from(hash % values.len() as u64).unwrap_or(0);
        if let Some(value) = values.get_mut(at) {
            *value += 1.0;
        }
    }
    let length = values.iter().map(|v| v * v).sum::<f64>().sqrt();
    let scale = if length > 0.0 { length } else { 1.0 };
    values.iter().map(|v| v / scale).collect()
}
