//! Errors of reading a model and of encoding with it. The texts are for the owner of the model
//! directory.

use std::path::{Path, PathBuf};

/// Reason why a model directory can't be used: the owner has to change it, or name another one.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file that every model has is not there.
    #[error(
        "{} has no {file}; a model directory has config.json, model.safetensors, and tokenizer.json or vocab.txt",
        dir.display()
    )]
    Missing {
        /// Directory of the model.
        dir: PathBuf,
        /// Name of the file.
        file: &'static str,
    },
    /// A file can't be read.
    #[error("{} can't be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A file is not of the form that its name promises.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Description of the damage.
        what: String,
    },
    /// The model is of a kind that this encoder can't run.
    #[error("{} can't be used: {what}", path.display())]
    Unsupported {
        /// The file that says so.
        path: PathBuf,
        /// The need of the model that is not met.
        what: String,
    },
}

impl ModelError {
    pub(crate) fn read(path: &Path, source: std::io::Error) -> Self {
        Self::Read { path: path.to_path_buf(), source }
    }

    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_path_buf(), what: what.into() }
    }

    pub(crate) fn unsupported(path: &Path, what: impl Into<String>) -> Self {
        Self::Unsupported { path: path.to_path_buf(), what: what.into() }
    }
}

/// Reason why texts were not encoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The caller asked to stop.
    #[error("encoding was cancelled")]
    Cancelled,
    /// The weights can't be read any more, or they are not numbers.
    #[error("the model gives no usable vector for text {text}: {what}")]
    Unusable {
        /// Index of the text.
        text: usize,
        /// Description of the fault.
        what: String,
    },
}
