//! Lists the models that Bedrock has for an account: `ListFoundationModels` (spec `models.md`
//! §2.4).
//!
//! The list is requested once; `discovery` decides when to ask again
//! ([`BedrockDiscovery::refresh`]) and caches the answer.

use bytes::Bytes;
use openclaw_config::settings::ModelCost;
use openclaw_config::settings::ProviderAuth;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::credentials::{self, AwsError};
use super::{failure, place, sign};
use crate::api::Api;
use crate::net::{Headers, Http, JSON, NetError};
use crate::provider_entry::{ModelEntry, ProviderEntry};
use crate::provider_key::ProviderKey;
use crate::settings::BedrockDiscovery;
use crate::variables::Variables;
use crate::wire::WireRequest;

/// Time limit for the list.
const DEADLINE: Duration = Duration::from_secs(10);
/// Largest list that is read.
const MAX_LIST: usize = 4 * 1024 * 1024;
/// AWS's own variable for another address of this service.
const ENDPOINT: &str = "AWS_ENDPOINT_URL_BEDROCK";
/// Parts of the ids and names of models that reason.
const REASONING: &[&str] = &[
    "reasoning",
    "thinking",
    "claude-3-7-",
    "claude-opus-4",
    "claude-sonnet-4",
    "claude-haiku-4",
    "deepseek.r1",
];

/// Error of listing the models. The texts are for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// No credentials are available for the request.
    #[error("{0}")]
    Credentials(String),
    /// The server could not be reached.
    #[error("cannot list the models of Bedrock: {0}")]
    Net(#[from] NetError),
    /// The answer took too long.
    #[error("cannot list the models of Bedrock: no answer within {0:?}")]
    Late(Duration),
    /// AWS refused, or something else answered.
    #[error("cannot list the models of Bedrock: {0}")]
    Refused(String),
}

impl From<AwsError> for DiscoveryError {
    fn from(error: AwsError) -> Self {
        Self::Credentials(error.to_string())
    }
}

impl BedrockDiscovery {
    /// Returns true if Bedrock is to be asked at all: as configured, else if AWS's variables name
    /// credentials.
    pub fn should_run(&self, variables: &Variables) -> bool {
        self.enabled.unwrap_or_else(|| credentials::variable(variables).is_some())
    }

    /// Asks for the models.
    ///
    /// # Errors
    /// See [`DiscoveryError`].
    pub async fn run(&self, http: &Http, variables: &Variables) -> Result<ProviderEntry, DiscoveryError> {
        let found = credentials::find(variables).await?;
        let key = found.map(|found| ProviderKey::from(found.secret)).ok_or_else(|| {
            DiscoveryError::Credentials(
                "there are no AWS credentials to list the models of Bedrock with".to_owned(),
            )
        })?;
        let region = self.region.clone().or_else(|| key.part("region").map(str::to_owned));
        let region = region.unwrap_or_else(|| place::DEFAULT_REGION.to_owned());
        let mut asked = self.clone();
        asked.address = asked.address.or_else(|| variables.get(ENDPOINT).map(str::to_owned));
        let request = asked.request(&key, &region, openclaw_config::clock::now_ms())?;
        let document = tokio::time::timeout(DEADLINE, list(http, request))
            .await
            .map_err(|_| DiscoveryError::Late(DEADLINE))??;
        let address = place::runtime_address(&region)?;
        let here = |model| ModelEntry { base_url: Some(address.clone()), ..model };
        let models = self.models(&document)?.into_iter().map(here).collect();
        Ok(ProviderEntry {
            api: Some(Api::BedrockConverseStream),
            auth: Some(ProviderAuth::AwsSdk),
            models,
            ..ProviderEntry::default()
        })
    }

    fn request(&self, key: &ProviderKey, region: &str, now: i64) -> Result<WireRequest, DiscoveryError> {
        let base = match &self.address {
            Some(address) => address.clone(),
            None => place::control_address(region)?,
        };
        let mut headers = Headers::accepting(JSON);
        if let Some(token) = key.part("token") {
            headers.bearer(token)?;
        }
        let url = format!("{}/foundation-models", base.trim_end_matches('/'));
        let mut request = WireRequest { url, headers, body: Bytes::new() };
        if let Some(keys) = sign::AccessKeys::of(key) {
            sign::sign(&keys, region, "GET", &mut request, now)?;
        }
        Ok(request)
    }

    /// The models of a list that are active, stream, and write text; by name.
    fn models(&self, document: &str) -> Result<Vec<ModelEntry>, DiscoveryError> {
        let list: FoundationModels = serde_json::from_str(document)
            .map_err(|_| DiscoveryError::Refused("the answer is no list of models".to_owned()))?;
        let wanted = list.model_summaries.into_iter().filter(|model| model.is_usable() && self.wants(model));
        let mut models: Vec<ModelEntry> = wanted.map(|model| self.entry(model)).collect();
        models.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        Ok(models)
    }

    fn wants(&self, model: &FoundationModel) -> bool {
        let vendor_of_id = model.model_id.split('.').next().unwrap_or_default();
        self.providers.is_empty()
            || self.providers.iter().map(|wanted| wanted.trim()).any(|wanted| {
                wanted.eq_ignore_ascii_case(vendor_of_id)
                    || model.provider_name.as_deref().is_some_and(|name| wanted.eq_ignore_ascii_case(name))
            })
    }

    fn entry(&self, model: FoundationModel) -> ModelEntry {
        let name = model.model_name.filter(|name| !name.trim().is_empty());
        let name = name.unwrap_or_else(|| model.model_id.clone());
        let words = format!("{} {name}", model.model_id).to_lowercase();
        let sees = model.input_modalities.iter().any(|kind| kind == "IMAGE");
        let input = if sees { vec!["text", "image"] } else { vec!["text"] };
        ModelEntry {
            id: model.model_id,
            name: Some(name),
            reasoning: Some(REASONING.iter().any(|part| words.contains(part))),
            input: Some(input.into_iter().map(str::to_owned).collect()),
            cost: Some(ModelCost::default()),
            context_window: Some(self.context_window),
            max_tokens: Some(self.max_tokens),
            ..ModelEntry::default()
        }
    }
}

async fn list(http: &Http, request: WireRequest) -> Result<String, DiscoveryError> {
    let incoming = http.get(&request.url, request.headers).await?;
    let status = incoming.status;
    if !(200..300).contains(&status) {
        let body = incoming.error_body().await;
        let error: Value = serde_json::from_str(&body).unwrap_or_default();
        let words = failure::error_words(&error, &body);
        return Err(DiscoveryError::Refused(format!("{status} {}", crate::wire::glimpse(&words))));
    }
    let bytes = incoming.whole(MAX_LIST).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoundationModels {
    model_summaries: Vec<FoundationModel>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FoundationModel {
    model_id: String,
    model_name: Option<String>,
    provider_name: Option<String>,
    #[serde(default)]
    input_modalities: Vec<String>,
    #[serde(default)]
    output_modalities: Vec<String>,
    response_streaming_supported: Option<bool>,
    model_lifecycle: Option<Lifecycle>,
}

#[derive(Deserialize)]
struct Lifecycle {
    status: Option<String>,
}

impl FoundationModel {
    fn is_usable(&self) -> bool {
        let status = self.model_lifecycle.as_ref().and_then(|lifecycle| lifecycle.status.as_deref());
        !self.model_id.trim().is_empty()
            && status.is_some_and(|status| status.eq_ignore_ascii_case("ACTIVE"))
            && self.response_streaming_supported == Some(true)
            && self.output_modalities.iter().any(|kind| kind == "TEXT")
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;
    use serde_json::json;

    use super::*;

    fn summary(id: &str, vendor: &str, change: &Value) -> Value {
        let mut model = json!({"modelId": id, "modelName": id.to_uppercase(), "providerName": vendor, "inputModalities": ["TEXT"],
            "outputModalities": ["TEXT"], "responseStreamingSupported": true, "modelLifecycle": {"status": "ACTIVE"}});
        model.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        model
    }

    #[test]
    fn models_that_can_be_used_are_listed_by_name() {
        let document = json!({"modelSummaries": [
            summary("meta.llama", "Meta", &json!({})),
            summary("anthropic.claude-sonnet-4", "Anthropic", &json!({"inputModalities": ["TEXT", "IMAGE"]})),
            summary("anthropic.old", "Anthropic", &json!({"modelLifecycle": {"status": "LEGACY"}})),
            summary("anthropic.unsaid", "Anthropic", &json!({"modelLifecycle": null})),
            summary("amazon.image", "Amazon", &json!({"outputModalities": ["IMAGE"]})),
            summary("amazon.slow", "Amazon", &json!({"responseStreamingSupported": false})),
            summary("amazon.nameless", "Amazon", &json!({"modelName": null})),
        ]})
        .to_string();
        let listed = |discovery: &BedrockDiscovery| -> Vec<_> {
            let models = discovery.models(&document).unwrap();
            let row = |m: ModelEntry| {
                (
                    m.id,
                    m.name.unwrap(),
                    m.reasoning.unwrap(),
                    m.input.unwrap().len(),
                    m.context_window,
                    m.max_tokens,
                )
            };
            models.into_iter().map(row).collect()
        };
        let row = |id: &str, name: &str, reasons, inputs| {
            (id.to_owned(), name.to_owned(), reasons, inputs, Some(32_000), Some(4096))
        };
        let claude = row("anthropic.claude-sonnet-4", "ANTHROPIC.CLAUDE-SONNET-4", true, 2);
        let llama = row("meta.llama", "META.LLAMA", false, 1);
        let nameless = row("amazon.nameless", "amazon.nameless", false, 1);
        assert_eq!(listed(&BedrockDiscovery::default()), [claude.clone(), llama.clone(), nameless]);
        let some = BedrockDiscovery {
            providers: vec![" anthropic".to_owned(), "META".to_owned()],
            ..BedrockDiscovery::default()
        };
        assert_eq!(listed(&some), [claude, llama]);
        assert!(BedrockDiscovery::default().models("<html>").is_err());
    }

    /// The order of `models.md` §2.4.
    #[tokio::test]
    async fn the_region_is_the_configured_one_then_that_of_the_variables() {
        use openclaw_testkit::model_server::{ModelServer, Reply};
        let document = json!({"modelSummaries": [summary("meta.llama", "Meta", &json!({}))]}).to_string();
        let list = move |_: &_| Some(Reply::plain(200, "application/json", document.clone()));
        let server = ModelServer::queue([]).await.listing(list);
        let keys = [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s")];
        let (first, second) = (("AWS_REGION", "eu-west-1"), ("AWS_DEFAULT_REGION", "eu-north-1"));
        let rows = [
            (Some("us-west-2"), vec![first, second], "us-west-2"),
            (Some("us-west-2"), vec![], "us-west-2"),
            (None, vec![first, second], "eu-west-1"),
            (None, vec![second], "eu-north-1"),
            (None, vec![], "us-east-1"),
        ];
        for (configured, regions, expect) in rows {
            let discovery = BedrockDiscovery {
                region: configured.map(str::to_owned),
                address: Some(server.url()),
                ..BedrockDiscovery::default()
            };
            let variables = keys.iter().chain(&regions).copied().collect();
            let found = discovery.run(&Http::default(), &variables).await.unwrap();
            let address = format!("https://bedrock-runtime.{expect}.amazonaws.com");
            assert_eq!(found.models[0].base_url, Some(address), "{configured:?} {regions:?}");
            let asked = server.requests().pop().unwrap();
            let signed = asked.header("authorization").unwrap();
            assert!(signed.contains(&format!("/{expect}/bedrock/aws4_request")), "{signed}");
        }
        assert_eq!(BedrockDiscovery::default().refresh, Duration::from_secs(3600));
    }

    #[test]
    fn it_runs_when_asked_or_when_there_are_credentials() {
        let variables = |pairs: &[(&str, &str)]| pairs.iter().copied().collect::<Variables>();
        let both = variables(&[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "s")]);
        let rows = [
            (None, variables(&[]), false),
            (None, variables(&[("AWS_ACCESS_KEY_ID", "a")]), false),
            (None, both.clone(), true),
            (None, variables(&[("AWS_PROFILE", "p")]), true),
            (None, variables(&[("AWS_BEARER_TOKEN_BEDROCK", "b")]), true),
            (Some(false), both, false),
            (Some(true), variables(&[]), true),
        ];
        for (enabled, variables, expect) in rows {
            let discovery = BedrockDiscovery { enabled, ..BedrockDiscovery::default() };
            assert_eq!(discovery.should_run(&variables), expect, "{enabled:?} {variables:?}");
        }
    }

    #[test]
    fn the_request_is_signed_or_carries_the_token() {
        let request = |key: &str| {
            let key = ProviderKey::from(SecretString::from(key));
            let request = BedrockDiscovery::default().request(&key, "eu-west-1", 0).unwrap();
            let sent = request.headers.pairs().into_iter().find(|(name, _)| name == "authorization");
            (request.url, sent.map(|(_, value)| value).unwrap_or_default())
        };
        let address = "https://bedrock.eu-west-1.amazonaws.com/foundation-models";
        assert_eq!(request(r#"{"token":"t"}"#), (address.to_owned(), "Bearer t".to_owned()));
        let (url, signed) = request(r#"{"accessKeyId":"A","secretAccessKey":"s"}"#);
        assert_eq!(url, address);
        assert!(signed.contains("Credential=A/19700101/eu-west-1/bedrock/aws4_request"), "{signed}");
    }

    #[tokio::test]
    async fn what_goes_wrong_is_said() {
        let none =
            BedrockDiscovery::default().run(&Http::default(), &Variables::default()).await.unwrap_err();
        assert!(none.to_string().contains("no AWS credentials"), "{none}");
        let server = openclaw_testkit::model_server::ModelServer::queue([]).await;
        let discovery = BedrockDiscovery { address: Some(server.url()), ..BedrockDiscovery::default() };
        let variables = [("AWS_BEARER_TOKEN_BEDROCK", "b")].into_iter().collect();
        let refused = discovery.run(&Http::default(), &variables).await.unwrap_err();
        assert!(refused.to_string().contains("404"), "{refused}");
        assert_eq!(server.requests()[0].path, "/foundation-models");
    }
}
