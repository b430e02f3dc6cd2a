//! Setup of an account by the command line: which keys of its section hold what a person gives, and
//! what a person is told who has nothing to give yet.

/// Way in which an account of a platform is set up.
#[derive(Debug, Clone, Copy)]
pub struct AccountSetup {
    /// Token of the account.
    pub token: TokenSetup,
    /// Keys of its webhook; `None` if the platform pushes to none.
    pub webhook: Option<WebhookKeys>,
}

/// Token of an account.
#[derive(Debug, Clone, Copy)]
pub struct TokenSetup {
    /// Key of the account's section that holds it.
    pub key: &'static str,
    /// Key that holds the path of a file with it.
    pub file_key: &'static str,
    /// Name for people, such as `bot token`.
    pub name: &'static str,
    /// Form of a token, for people.
    pub form: &'static str,
    /// True if a text has that form.
    pub has_form: fn(&str) -> bool,
    /// Source of tokens for people, as a sentence.
    pub origin: &'static str,
    /// Advice for a person who gave something else, as a sentence.
    pub advice: &'static str,
}

/// Keys of a webhook in an account's section.
#[derive(Debug, Clone, Copy)]
pub struct WebhookKeys {
    /// Address that the platform pushes to.
    pub url: &'static str,
    /// Path of the webhook on the account's listener.
    pub path: &'static str,
    /// Secret with which the platform authenticates its pushes. Without one a webhook is refused.
    pub secret: &'static str,
}
