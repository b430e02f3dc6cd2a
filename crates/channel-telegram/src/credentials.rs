//! The token of a bot: where it is found, and that it is never shown (spec `channels.md` §1.4).

use std::io;
use std::path::{Path, PathBuf};

use openclaw_config::Config;
use secrecy::ExposeSecret as _;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::settings::{DEFAULT_ACCOUNT, channel_section, own_section};

const VARIABLE: &str = "TELEGRAM_BOT_TOKEN";
/// Key of the token.
pub(super) const TOKEN_KEY: &str = "botToken";
/// Key of the path of a file with the token.
pub(super) const FILE_KEY: &str = "tokenFile";
/// Longest token file; tokens have about fifty characters.
const MAX_TOKEN_FILE: u64 = 4096;

/// A bot's token. Never shown: not in errors, not in `Debug`.
#[derive(Clone)]
pub struct BotToken {
    secret: openclaw_config::settings::Secret,
    source: TokenSource,
}

/// Source of a token, as `channels.status` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenSource {
    /// `tokenFile`.
    File,
    /// `botToken`.
    Config,
    /// The variable.
    Environment,
}

/// Reason why an account has no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoToken {
    /// No token is configured.
    #[error(
        "Telegram bot token missing for account \"{0}\" (set channels.telegram.accounts.{0}.botToken/tokenFile or {VARIABLE} for default)."
    )]
    Missing(String),
    /// The token file can't be used.
    #[error("the token file {} of Telegram account \"{account}\" can't be read: {why}", .path.display())]
    File {
        /// The account.
        account: String,
        /// The file.
        path: PathBuf,
        /// Reason of the failure.
        why: String,
    },
}

impl TokenSource {
    /// As `channels.status` says.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "tokenFile",
            Self::Config => "config",
            Self::Environment => "env",
        }
    }
}

impl BotToken {
    /// The token of an account, if it has one.
    pub fn find(config: &Config, id: &str) -> Option<Self> {
        Self::look_up(config, id).ok()
    }

    /// The token of an account. A file that is configured and can't be read is no token: nothing else is tried in its place.
    ///
    /// # Errors
    /// Reason why the account has none.
    pub fn look_up(config: &Config, id: &str) -> Result<Self, NoToken> {
        let missing = || NoToken::Missing(id.to_owned());
        let account = own_section(config, id);
        let channel = channel_section(config).filter(|_| id == DEFAULT_ACCOUNT);
        let env = config.environment();
        for section in [account, channel].into_iter().flatten() {
            if let Some(path) = text(section, FILE_KEY) {
                let path = env.expand_path(path.trim());
                let file = |why: String| NoToken::File { account: id.to_owned(), path: path.clone(), why };
                let token = read(&path).map_err(|error| file(error.to_string()))?;
                return Self::new(&token, TokenSource::File).ok_or_else(|| file("it is empty".to_owned()));
            }
            if let Some(token) = text(section, TOKEN_KEY) {
                return Self::new(token, TokenSource::Config).ok_or_else(missing);
            }
        }
        let token = env.get_nonblank(VARIABLE).filter(|_| id == DEFAULT_ACCOUNT).ok_or_else(missing)?;
        Self::new(token, TokenSource::Environment).ok_or_else(missing)
    }

    fn new(token: &str, source: TokenSource) -> Option<Self> {
        let token = token.trim();
        (!token.is_empty()).then(|| Self { secret: token.to_owned().into(), source })
    }

    /// Returns the source of the token.
    pub fn source(&self) -> TokenSource {
        self.source
    }

    /// The bot's id: the digits in front of the colon.
    pub fn bot_id(&self) -> Option<i64> {
        self.expose().split_once(':')?.0.parse().ok()
    }

    /// Returns the token, for requests only.
    pub(super) fn expose(&self) -> &str {
        self.secret.expose_secret()
    }

    /// Returns a digest that distinguishes tokens without revealing them.
    pub(super) fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.expose()).into()
    }

    /// A text without the token in it.
    pub(super) fn redact(&self, text: &str) -> String {
        let secret = self.expose().split_once(':').map_or(self.expose(), |(_, secret)| secret);
        if secret.len() < 6 { text.to_owned() } else { text.replace(secret, "***") }
    }
}

impl std::fmt::Debug for BotToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BotToken").field("source", &self.source).finish_non_exhaustive()
    }
}

/// True for a number, a colon, and a secret part.
pub(super) fn has_token_form(text: &str) -> bool {
    let is_secret = |text: &str| {
        text.len() >= 8 && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    text.split_once(':').is_some_and(|(id, secret)| id.parse::<u64>().is_ok() && is_secret(secret))
}

fn text<'a>(section: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    section.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

fn read(path: &Path) -> io::Result<String> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if meta.len() > MAX_TOKEN_FILE {
        return Err(io::Error::other(format!("it is longer than {MAX_TOKEN_FILE} bytes")));
    }
    std::fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    use openclaw_config::Environment;

    use super::*;

    #[test]
    fn the_first_place_that_is_configured_counts() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, " 7:from-file\n").unwrap();
        let file = file.display();
        let env = Environment::new(
            [
                ("HOME".to_owned(), dir.path().display().to_string()),
                (VARIABLE.to_owned(), "9:env".to_owned()),
            ],
            dir.path(),
        );
        let rows = [
            ("{}".to_owned(), "default", Some(("9:env", TokenSource::Environment))),
            ("{channels: {telegram: {accounts: {a: {}}}}}".to_owned(), "a", None),
            (
                "{channels: {telegram: {botToken: '1:c', accounts: {a: {botToken: '2:a'}, default: {}}}}}"
                    .to_owned(),
                "a",
                Some(("2:a", TokenSource::Config)),
            ),
            (
                "{channels: {telegram: {botToken: '1:c', accounts: {a: {botToken: '2:a'}, default: {}}}}}"
                    .to_owned(),
                "default",
                Some(("1:c", TokenSource::Config)),
            ),
            ("{channels: {telegram: {botToken: '1:c', accounts: {a: {}}}}}".to_owned(), "a", None),
            (
                format!("{{channels: {{telegram: {{botToken: '1:c', tokenFile: '{file}'}}}}}}"),
                "default",
                Some(("7:from-file", TokenSource::File)),
            ),
            (
                "{channels: {telegram: {botToken: '1:c', tokenFile: '/nowhere/t'}}}".to_owned(),
                "default",
                None,
            ),
        ];
        for (text, id, expect) in rows {
            let config = Config::from_json5(&text, &env).unwrap();
            let found = BotToken::find(&config, id);
            let found = found.as_ref().map(|token| (token.expose(), token.source()));
            assert_eq!(found, expect, "{text} {id}");
        }
    }

    #[test]
    fn a_file_that_holds_no_token_is_named_with_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("empty"), "\n").unwrap();
        std::fs::write(at("long"), "x".repeat(5_000)).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let env = Environment::new([("HOME".to_owned(), dir.path().display().to_string())], dir.path());
        let rows = [
            ("nowhere", "No such file or directory (os error 2)"),
            ("empty", "it is empty"),
            ("long", "it is longer than 4096 bytes"),
            ("folder", "it is no file"),
        ];
        for (name, why) in rows {
            let path = at(name);
            let text =
                format!("{{channels: {{telegram: {{botToken: '1:c', tokenFile: '{}'}}}}}}", path.display());
            let config = Config::from_json5(&text, &env).unwrap();
            let told = BotToken::look_up(&config, "default").unwrap_err().to_string();
            let path = path.display();
            assert_eq!(
                told,
                format!("the token file {path} of Telegram account \"default\" can't be read: {why}")
            );
        }
    }

    #[test]
    fn tokens_are_told_from_nonsense() {
        for (token, expect) in
            [("123:TEST-token-1", true), ("token", false), ("x:TEST-token", false), ("1:a b c d e f", false)]
        {
            assert_eq!(has_token_form(token), expect, "{token}");
        }
    }

    #[test]
    fn credentials_are_in_the_keys_that_the_row_names() {
        assert_eq!(openclaw_config::registry::TELEGRAM.credential_keys, [TOKEN_KEY, FILE_KEY]);
        assert_eq!(openclaw_config::registry::TELEGRAM.credentials, [VARIABLE]);
    }

    #[test]
    fn a_token_is_never_shown() {
        let token = BotToken::new("123:secret-secret", TokenSource::Config).unwrap();
        assert!(!format!("{token:?}").contains("secret-secret"));
        assert_eq!(token.redact("GET /bot123:secret-secret/getMe"), "GET /bot123:***/getMe");
        assert_eq!(token.bot_id(), Some(123));
    }
}
