//! Keys that can be had anew: what a provider refuses before its time is asked for again, once.

use std::path::PathBuf;

use secrecy::SecretString;

use super::credential::Secret;
use super::error::CredentialError;
use super::legacy::Surroundings;
use super::logins::{Because, LoginPlace, Logins};
use crate::google::adc::Adc;

/// Source of a key that the server may revoke before it expires.
#[derive(Debug, Clone)]
pub(crate) struct Renewable {
    pub(super) logins: Logins,
    pub(super) agent_dir: PathBuf,
    pub(super) around: Surroundings,
    pub(super) source: KeySource,
}

/// Kind of source.
#[derive(Debug, Clone)]
pub(super) enum KeySource {
    /// A login, by its profile id.
    Login(String),
    /// The token of a GitHub account, exchanged for one that Copilot takes.
    Copilot(SecretString),
    /// Google's application default credentials.
    Google(Box<Adc>),
}

impl Renewable {
    /// Returns a key in place of the refused one.
    pub(crate) async fn renewed(&self, refused: &SecretString) -> Result<SecretString, CredentialError> {
        match &self.source {
            KeySource::Login(id) => {
                let place = LoginPlace { agent_dir: &self.agent_dir, around: &self.around };
                let credential = self.logins.renewed(place, id, Because::Refused(refused)).await?;
                let Secret::OAuth { access, .. } = &credential.secret else {
                    return Err(CredentialError::Expired(id.clone()));
                };
                Ok(credential.composite(access).unwrap_or_else(|| access.clone()))
            }
            KeySource::Copilot(account) => {
                self.logins.copilot(&self.around, account, Because::Refused(refused)).await
            }
            KeySource::Google(adc) => self.logins.google(adc, Because::Refused(refused)).await,
        }
    }
}
