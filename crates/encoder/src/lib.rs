//! Embeds text with models of the BERT family, read from a directory.
//!
//! [`Encoder::open`] reads a directory as the makers of a model publish it: `config.json`,
//! `model.safetensors`, and `tokenizer.json` or `vocab.txt`. [`Encoder::encode`] turns texts into
//! vectors of length 1. Everything runs on the processor, in `f32`, on at most
//! [`MAX_THREADS`] threads.
//!
//! The way of a text: [`tokenizer`] turns it into token ids, `embeddings` into one row for each
//! token, `layer` passes the rows through the network, `pooling` makes one vector of them.
//!
//! The crate downloads nothing, has no model of its own, trains nothing, and knows nothing of
//! memory files. It reads no GGUF and no ONNX files, and no models that generate text.

mod config;
mod embeddings;
mod encoder;
mod error;
mod layer;
mod math;
mod pooling;
mod prefixes;
pub mod tokenizer;
mod weights;

pub use encoder::{Encoder, MAX_THREADS};
pub use error::{EncodeError, ModelError};
pub use prefixes::TextKind;
