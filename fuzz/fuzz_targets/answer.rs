//! Whatever a model server sends, the answer ends in exactly one message, and in the same one wherever the bytes are cut.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use openclaw_models::catalog::{Catalog, ModelSpec};
use openclaw_models::replay::replay;
use openclaw_models::{ModelEvent, ModelRef, ModelSettings};

/// A model of each protocol.
static MODELS: LazyLock<Vec<ModelSpec>> = LazyLock::new(|| {
    let catalog = Catalog::new(&ModelSettings::default());
    let models = [
        ("anthropic", "claude-opus-4-6"),
        ("openrouter", "any"),
        ("openai", "gpt-5.2"),
        ("openai-codex", "gpt-5.3-codex"),
        ("google", "gemini-3-pro-preview"),
        ("amazon-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ];
    models.iter().filter_map(|(provider, id)| catalog.lookup(&ModelRef::new(provider, id)).ok()).collect()
});

fuzz_target!(|input: (u8, Vec<u8>, usize)| {
    let (which, bytes, at) = input;
    let model = &MODELS[usize::from(which) % MODELS.len()];
    let (head, tail) = bytes.split_at(at.min(bytes.len()));
    let whole = replay(model, 0, [bytes.as_slice()]).expect("a protocol with a client");
    let ends = whole.iter().filter(|event| matches!(event, ModelEvent::Done { .. })).count();
    assert_eq!(ends, 1);
    assert_eq!(replay(model, 0, [head, tail]), Some(whole));
});
