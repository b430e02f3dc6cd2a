//! Reads a tokenizer from `tokenizer.json`, or from `vocab.txt` with `tokenizer_config.json`.

use std::path::Path;

use base64::Engine as _;
use serde::Deserialize;
use serde_json::Value;

use super::bert_text::BertText;
use super::charsmap::Charsmap;
use super::unigram::Unigram;
use super::unigram_text::TextChange;
use super::word_piece::WordPiece;
use super::{Kind, Tokenizer};
use crate::config::{bounded, settings};
use crate::error::ModelError;

const FILE: &str = "tokenizer.json";
const VOCABULARY: &str = "vocab.txt";
const SETTINGS: &str = "tokenizer_config.json";
/// Largest tokenizer that is read: those of 250,000 pieces have 17 MB.
const MAX_BYTES: u64 = 128 * 1024 * 1024;
/// Mark of pieces that continue a word.
const CONTINUES: &str = "##";
/// Characters above which WordPiece does not know a word.
const LONGEST_WORD: usize = 100;

#[derive(Deserialize)]
struct RawTokenizer {
    normalizer: Option<Value>,
    pre_tokenizer: Option<Value>,
    model: RawModel,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum RawModel {
    WordPiece(RawWordPiece),
    Unigram(RawUnigram),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct RawWordPiece {
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    max_input_chars_per_word: Option<usize>,
    vocab: std::collections::HashMap<String, u32>,
}

#[derive(Deserialize)]
struct RawUnigram {
    unk_id: Option<u32>,
    vocab: Vec<(String, f32)>,
    #[serde(default)]
    byte_fallback: bool,
}

#[derive(Deserialize, Default)]
struct RawSettings {
    do_lower_case: Option<bool>,
    strip_accents: Option<bool>,
    tokenize_chinese_chars: Option<bool>,
}

/// Reads the tokenizer of a model directory. Returns it with the bytes of its file.
pub(super) fn read(dir: &Path) -> Result<(Tokenizer, Vec<u8>), ModelError> {
    let path = dir.join(FILE);
    if let Some(bytes) = bounded(&path, MAX_BYTES)? {
        let tokenizer = of_json(&bytes).map_err(|what| match what {
            Fault::Damaged(what) => ModelError::damaged(&path, what),
            Fault::Unsupported(what) => ModelError::unsupported(&path, what),
        })?;
        return Ok((tokenizer, bytes));
    }
    let path = dir.join(VOCABULARY);
    if let Some(bytes) = bounded(&path, MAX_BYTES)? {
        let rules: RawSettings = settings(&dir.join(SETTINGS))?.unwrap_or_default();
        let tokenizer = of_vocabulary(&bytes, &rules).map_err(|what| ModelError::damaged(&path, what))?;
        return Ok((tokenizer, bytes));
    }
    for file in ["sentencepiece.bpe.model", "spiece.model", "vocab.json"] {
        if dir.join(file).exists() {
            let what = format!("a tokenizer in this form is not read; its makers publish a {FILE} too");
            return Err(ModelError::unsupported(&dir.join(file), what));
        }
    }
    Err(ModelError::Missing { dir: dir.to_path_buf(), file: FILE })
}

enum Fault {
    Damaged(String),
    Unsupported(String),
}

fn unsupported(what: &str, kind: &str) -> Fault {
    Fault::Unsupported(format!("its {what} \"{kind}\" is not supported"))
}

fn of_json(bytes: &[u8]) -> Result<Tokenizer, Fault> {
    let raw: RawTokenizer =
        serde_json::from_slice(bytes).map_err(|error| Fault::Damaged(error.to_string()))?;
    match raw.model {
        RawModel::WordPiece(model) => {
            let text = bert_text(raw.normalizer.as_ref())?;
            word_piece(text, model).map_err(Fault::Damaged)
        }
        RawModel::Unigram(model) => {
            check_blanks(raw.pre_tokenizer.as_ref())?;
            let mut changes = Vec::new();
            if let Some(normalizer) = &raw.normalizer {
                add_changes(normalizer, &mut changes)?;
            }
            unigram(changes, model)
        }
        RawModel::Other => Err(Fault::Unsupported(
            "its tokenizer is neither WordPiece nor Unigram; serve the model with llama-server or Ollama and \
             name that in remote.baseUrl"
                .to_owned(),
        )),
    }
}

fn of_vocabulary(bytes: &[u8], rules: &RawSettings) -> Result<Tokenizer, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no UTF-8 text".to_owned())?;
    let vocab = text.lines().map(|line| line.trim_end_matches('\r').to_owned()).zip(0..).collect();
    let lowercase = rules.do_lower_case.unwrap_or(true);
    let text = BertText {
        lowercase,
        strip_accents: rules.strip_accents.unwrap_or(lowercase),
        clean: true,
        part_chinese: rules.tokenize_chinese_chars.unwrap_or(true),
    };
    let model = RawWordPiece {
        unk_token: None,
        continuing_subword_prefix: None,
        max_input_chars_per_word: None,
        vocab,
    };
    word_piece(text, model)
}

fn word_piece(text: BertText, raw: RawWordPiece) -> Result<Tokenizer, String> {
    let id = |mark: &str| raw.vocab.get(mark).copied().ok_or_else(|| format!("it has no token \"{mark}\""));
    let (begin, end) = (id("[CLS]")?, id("[SEP]")?);
    let unknown = id(raw.unk_token.as_deref().unwrap_or("[UNK]"))?;
    let continues = raw.continuing_subword_prefix.as_deref().unwrap_or(CONTINUES);
    let longest = raw.max_input_chars_per_word.unwrap_or(LONGEST_WORD);
    // Marks are no text: nobody's words may look like them.
    let pieces = raw.vocab.into_iter().filter(|(piece, _)| !is_mark(piece)).collect();
    let model = WordPiece::new(text, pieces, continues, unknown, longest);
    Ok(Tokenizer { begin, end, kind: Kind::WordPiece(model) })
}

/// True for `[CLS]` and the like. Text can't spell them anyway where brackets are split off.
fn is_mark(piece: &str) -> bool {
    piece.len() > 2 && piece.starts_with('[') && piece.ends_with(']')
}

fn unigram(changes: Vec<TextChange>, raw: RawUnigram) -> Result<Tokenizer, Fault> {
    if raw.byte_fallback {
        return Err(Fault::Unsupported("its byte_fallback is not supported".to_owned()));
    }
    let id = |mark: &str| {
        let at = raw.vocab.iter().position(|(piece, _)| piece == mark);
        let id = at.and_then(|at| u32::try_from(at).ok());
        id.ok_or_else(|| Fault::Damaged(format!("it has no token \"{mark}\"")))
    };
    let (begin, end) = (id("<s>")?, id("</s>")?);
    let unknown = raw.unk_id.ok_or_else(|| Fault::Damaged("it has no unk_id".to_owned()))?;
    let marks = ["<s>", "</s>", "<pad>", "<mask>"];
    // Their places are kept: an id is a position.
    let blank = |(piece, score): (String, f32)| {
        if marks.contains(&piece.as_str()) { (String::new(), 0.0) } else { (piece, score) }
    };
    let pieces = raw.vocab.into_iter().map(blank).collect();
    let model = Unigram::new(changes, pieces, unknown);
    Ok(Tokenizer { begin, end, kind: Kind::Unigram(model) })
}

fn kind_of(value: &Value) -> &str {
    value.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn bert_text(normalizer: Option<&Value>) -> Result<BertText, Fault> {
    let Some(normalizer) = normalizer else {
        return Ok(BertText { lowercase: false, strip_accents: false, clean: false, part_chinese: false });
    };
    if kind_of(normalizer) != "BertNormalizer" {
        return Err(unsupported("normalizer", kind_of(normalizer)));
    }
    let on = |name: &str| normalizer.get(name).and_then(Value::as_bool);
    let lowercase = on("lowercase").unwrap_or(true);
    Ok(BertText {
        lowercase,
        strip_accents: on("strip_accents").unwrap_or(lowercase),
        clean: on("clean_text").unwrap_or(true),
        part_chinese: on("handle_chinese_chars").unwrap_or(true),
    })
}

/// The changes of a normaliser. Those that only remove or join blanks are left out: words are split
/// at blanks in any case.
fn add_changes(normalizer: &Value, changes: &mut Vec<TextChange>) -> Result<(), Fault> {
    let change = match kind_of(normalizer) {
        "Sequence" => {
            return list(normalizer, "normalizers").try_for_each(|one| add_changes(one, changes));
        }
        "Precompiled" => {
            let text = normalizer.get("precompiled_charsmap").and_then(Value::as_str).unwrap_or_default();
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(text)
                .map_err(|_| Fault::Damaged("its precompiled_charsmap is no base64".to_owned()))?;
            TextChange::Charsmap(Charsmap::read(&bytes).map_err(Fault::Damaged)?)
        }
        "NFC" => TextChange::Nfc,
        "NFD" => TextChange::Nfd,
        "NFKC" => TextChange::Nfkc,
        "NFKD" => TextChange::Nfkd,
        "Lowercase" => TextChange::Lowercase,
        "Strip" => return Ok(()),
        "Replace" if normalizer.get("content").and_then(Value::as_str) == Some(" ") => return Ok(()),
        other => return Err(unsupported("normalizer", other)),
    };
    changes.push(change);
    Ok(())
}

/// Checks that words are split at blanks, which become a mark before each of them.
fn check_blanks(pre_tokenizer: Option<&Value>) -> Result<(), Fault> {
    let Some(pre_tokenizer) = pre_tokenizer else { return Ok(()) };
    match kind_of(pre_tokenizer) {
        "Sequence" => list(pre_tokenizer, "pretokenizers").try_for_each(|one| check_blanks(Some(one))),
        "WhitespaceSplit" | "Metaspace" => Ok(()),
        other => Err(unsupported("pre_tokenizer", other)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(json: &Value, text: &str) -> Result<Vec<u32>, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(FILE), json.to_string()).unwrap();
        match read(dir.path()) {
            Ok((tokenizer, _)) => Ok(tokenizer.tokens(&[text], 8)),
            Err(error) => Err(error.to_string()),
        }
    }

    fn word_piece_json() -> Value {
        json!({
            "normalizer": {"type": "BertNormalizer", "lowercase": true},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab":
                {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "##b": 4}}})
    }

    fn unigram_json() -> Value {
        json!({
            "normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}]},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": "▁"}]},
            "model": {"type": "Unigram", "unk_id": 2, "vocab":
                [["<s>", 0.0], ["</s>", 0.0], ["<unk>", 0.0], ["▁a", -1.0], ["b", -2.0]]}})
    }

    #[test]
    fn both_kinds_are_read() {
        assert_eq!(tokens(&word_piece_json(), "Ab c"), Ok(vec![1, 3, 4, 0, 2]));
        assert_eq!(tokens(&unigram_json(), "ab  a"), Ok(vec![0, 3, 4, 3, 1]));
        assert_eq!(tokens(&unigram_json(), "<s>"), Ok(vec![0, 2, 1]), "no mark by a text");
        assert_eq!(tokens(&unigram_json(), "a a a a a a a a a"), Ok(vec![0, 3, 3, 3, 3, 3, 3, 1]));
    }

    #[test]
    fn a_list_of_words_is_enough() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(VOCABULARY), "[PAD]\n[UNK]\n[CLS]\n[SEP]\nab\n##c\nÄb\n").unwrap();
        let found = |dir: &Path| read(dir).map(|(tokenizer, _)| tokenizer.tokens(&["Ab ÄBC Äb"], 8));
        assert_eq!(found(dir.path()).unwrap(), [2, 4, 4, 5, 4, 3]);
        std::fs::write(dir.path().join(SETTINGS), r#"{"do_lower_case": false}"#).unwrap();
        assert_eq!(found(dir.path()).unwrap(), [2, 1, 1, 6, 3]);
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let with = |mut json: Value, pointer: &str, value: Value| {
            *json.pointer_mut(pointer).unwrap() = value;
            json
        };
        let rows = [
            (with(word_piece_json(), "/model/type", json!("BPE")), "neither WordPiece nor Unigram"),
            (with(word_piece_json(), "/normalizer/type", json!("Nmt")), "normalizer \"Nmt\""),
            (with(word_piece_json(), "/model/vocab", json!({"a": 1})), "no token \"[CLS]\""),
            (with(unigram_json(), "/pre_tokenizer", json!({"type": "Punctuation"})), "\"Punctuation\""),
            (with(unigram_json(), "/normalizer", json!({"type": "StripAccents"})), "\"StripAccents\""),
            (with(unigram_json(), "/model/vocab", json!([["a", 0.0]])), "no token \"<s>\""),
            (
                with(
                    unigram_json(),
                    "/normalizer",
                    json!({"type": "Precompiled", "precompiled_charsmap": "?"}),
                ),
                "no base64",
            ),
            (json!({"model": 1}), "is damaged"),
        ];
        for (json, expect) in rows {
            let found = tokens(&json, "a").unwrap_err();
            assert!(found.contains(expect), "{found}");
        }
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("has no tokenizer.json"));
        std::fs::write(dir.path().join("sentencepiece.bpe.model"), "").unwrap();
        assert!(read(dir.path()).unwrap_err().to_string().contains("publish a tokenizer.json"));
    }
}
