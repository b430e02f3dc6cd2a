//! The providers of embeddings, and what they have in common with providers of models.

/// A provider of embeddings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmbeddingProvider {
    /// OpenAI, and every server that speaks its protocol.
    OpenAi,
    /// Google's Generative Language API.
    Gemini,
    /// Voyage AI.
    Voyage,
    /// A model on this machine.
    Local,
}

/// Facts about a provider on the internet.
#[derive(Debug)]
pub(super) struct RemoteFacts {
    /// Id of its credentials and of its section in `models.providers`.
    pub(super) credentials: &'static str,
    pub(super) base_url: &'static str,
    pub(super) model: &'static str,
    /// Prefixes that people write before the model's name.
    prefixes: &'static [&'static str],
}

const OPENAI: RemoteFacts = RemoteFacts {
    credentials: "openai",
    base_url: "https://api.openai.com/v1",
    model: "text-embedding-3-small",
    prefixes: &["openai/"],
};
const GEMINI: RemoteFacts = RemoteFacts {
    credentials: "google",
    base_url: "https://generativelanguage.googleapis.com/v1beta",
    model: "gemini-embedding-001",
    prefixes: &["models/", "gemini/", "google/"],
};
const VOYAGE: RemoteFacts = RemoteFacts {
    credentials: "voyage",
    base_url: "https://api.voyageai.com/v1",
    model: "voyage-4-large",
    prefixes: &["voyage/"],
};

impl EmbeddingProvider {
    /// Providers on the internet, in the order in which they are tried.
    pub(super) const REMOTE: [Self; 3] = [Self::OpenAi, Self::Gemini, Self::Voyage];

    /// Reads an id as the configuration writes it.
    pub fn parse(id: &str) -> Option<Self> {
        [Self::OpenAi, Self::Gemini, Self::Voyage, Self::Local].into_iter().find(|known| known.id() == id)
    }

    /// Id in the configuration and in index files.
    pub fn id(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Gemini => "gemini",
            Self::Voyage => "voyage",
            Self::Local => "local",
        }
    }

    pub(super) fn facts(self) -> Option<&'static RemoteFacts> {
        match self {
            Self::OpenAi => Some(&OPENAI),
            Self::Gemini => Some(&GEMINI),
            Self::Voyage => Some(&VOYAGE),
            Self::Local => None,
        }
    }
}

impl RemoteFacts {
    /// The model's name on the wire: as written without a prefix, else the provider's own.
    pub(super) fn model_named(&self, written: &str) -> String {
        let written = written.trim();
        let bare = self.prefixes.iter().find_map(|prefix| written.strip_prefix(prefix)).unwrap_or(written);
        if bare.is_empty() { self.model.to_owned() } else { bare.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_model_names_are_left_out() {
        use EmbeddingProvider::{Gemini, OpenAi, Voyage};
        let rows = [
            (OpenAi, "", "text-embedding-3-small"),
            (OpenAi, " openai/text-embedding-3-large ", "text-embedding-3-large"),
            (OpenAi, "google/x", "google/x"),
            (Gemini, "models/gemini-embedding-001", "gemini-embedding-001"),
            (Gemini, "gemini/a", "a"),
            (Gemini, "google/", "gemini-embedding-001"),
            (Voyage, "voyage/voyage-code-3", "voyage-code-3"),
        ];
        for (provider, written, expect) in rows {
            assert_eq!(provider.facts().unwrap().model_named(written), expect, "{written}");
        }
        for provider in [OpenAi, Gemini, Voyage, EmbeddingProvider::Local] {
            assert_eq!(EmbeddingProvider::parse(provider.id()), Some(provider));
        }
        assert_eq!(EmbeddingProvider::parse("auto"), None);
    }
}
