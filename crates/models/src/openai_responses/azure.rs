//! OpenAI's models at Azure: the Responses protocol at an address of the owner's own, with another key header.
//!
//! The documented form is `https://<resource>.openai.azure.com/openai/v1/responses` with header `api-key`; the model of the
//! request is the name of the deployment.

use serde_json::Value;
use url::Url;

use super::failure::{Backend, error_words};
use super::request;
use super::stream::ResponsesDecoder;
use crate::conversation::RequestConversation;
use crate::history::IdRule;
use crate::json::Json;
use crate::model_spec::ModelSpec;
use crate::net::{Headers, JSON, NetError};
use crate::request::ModelRequest;
use crate::stream::ModelFailure;
use crate::wire::{Decoder, OutgoingCall, Protocol, RequestHead, add_headers};

/// Version of the interface unless the address names one.
const VERSION: &str = "v1";

/// The protocol.
#[derive(Debug)]
pub(crate) struct Azure;

impl Protocol for Azure {
    fn call_ids(&self, _spec: &ModelSpec) -> IdRule {
        IdRule::Responses
    }

    fn head(&self, call: &OutgoingCall<'_>) -> Result<RequestHead, ModelFailure> {
        let OutgoingCall { spec, key, .. } = *call;
        let mut headers = Headers::posting(JSON);
        if let Some(key) = key {
            headers.set("api-key", key.expose())?;
            if spec.auth_header {
                headers.bearer(key.expose())?;
            }
        }
        add_headers(&mut headers, &spec.headers)?;
        Ok(RequestHead { url: url(&spec.base_url)?, headers })
    }

    fn body<'a>(
        &self,
        spec: &'a ModelSpec,
        request: &'a ModelRequest,
        conversation: &RequestConversation<'a>,
    ) -> Json<'a> {
        request::body(spec, request, conversation)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(ResponsesDecoder::new(Backend::Api))
    }

    fn error_words(&self, error: &Value, body: &str) -> String {
        error_words(error, body)
    }
}

/// The address of the interface, from that of the resource, with or without its path.
fn url(base: &str) -> Result<String, NetError> {
    let shown = || NetError::Address(base.split(['?', '@']).next().unwrap_or_default().to_owned());
    let mut url = Url::parse(base.trim()).map_err(|_| shown())?;
    let path = url.path().trim_end_matches('/');
    let path = match path {
        "" => "/openai/v1/responses".to_owned(),
        _ if path.ends_with("/openai") => format!("{path}/v1/responses"),
        _ if path.ends_with("/responses") => path.to_owned(),
        _ => format!("{path}/responses"),
    };
    url.set_path(&path);
    if !url.query_pairs().any(|(name, _)| name == "api-version") {
        url.query_pairs_mut().append_pair("api-version", VERSION);
    }
    Ok(url.to_string())
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::provider_key::ProviderKey;

    #[test]
    fn the_address_is_found_from_that_of_the_resource() {
        let v1 = "https://r.openai.azure.com/openai/v1/responses?api-version=v1";
        let rows = [
            ("https://r.openai.azure.com", v1),
            ("https://r.openai.azure.com/openai", v1),
            ("https://r.openai.azure.com/openai/v1", v1),
            ("https://r.openai.azure.com/openai/v1/responses", v1),
            (
                "https://r.openai.azure.com/openai/v1?api-version=preview",
                "https://r.openai.azure.com/openai/v1/responses?api-version=preview",
            ),
            ("http://127.0.0.1:1/proxy", "http://127.0.0.1:1/proxy/responses?api-version=v1"),
        ];
        for (base, expect) in rows {
            assert_eq!(url(base).unwrap(), expect, "{base}");
        }
        assert_eq!(url("resource"), Err(NetError::Address("resource".to_owned())));
    }

    #[test]
    fn the_key_has_a_header_of_its_own() {
        let mut spec = ModelSpec::sample("azure-openai-responses", "my-gpt", "azure-openai-responses");
        let key = ProviderKey::from(SecretString::from("azure-key"));
        let request = ModelRequest::default();
        let asked = RequestConversation::whole(&[]).asked();
        let build = |spec: &ModelSpec| {
            let built =
                Azure.head(&OutgoingCall { spec, key: Some(&key), request: &request, asked }).unwrap();
            let named =
                |name: &str| built.headers.pairs().into_iter().find(|(n, _)| n == name).map(|(_, v)| v);
            (named("api-key"), named("authorization"))
        };
        let own = Some("azure-key".to_owned());
        assert_eq!(build(&spec), (own.clone(), None));
        spec.auth_header = true;
        assert_eq!(build(&spec), (own, Some("Bearer azure-key".to_owned())));
    }
}
