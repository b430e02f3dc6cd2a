//! Gemini at Google's cloud: the same request at an address made of project and place, with a login's token (spec
//! `models.md` §2.3). A plain key instead asks Vertex in its express mode, which knows neither.

use crate::model_spec::ModelSpec;
use crate::net::{Headers, NetError};
use crate::provider_key::ProviderKey;
use crate::region_name;
use crate::request::ModelRequest;
use crate::wire::{RequestHead, add_headers};

use super::request::method;

/// The version of the interface unless the address names one: the one with JSON Schema for tools.
const VERSION: &str = "v1beta1";
/// The place that is everywhere.
const GLOBAL: &str = "global";
/// Placeholder for the location in a configured address.
const PLACEHOLDER: &str = "{location}";

/// Returns the address and the headers of a request.
pub(super) fn head(
    spec: &ModelSpec,
    key: Option<&ProviderKey>,
    request: &ModelRequest,
) -> Result<RequestHead, NetError> {
    let mut headers = Headers::posting("*/*");
    match key {
        Some(key) if key.part("projectId").is_some() => {
            headers.bearer(key.expose())?;
            if let Some(project) = key.part("quotaProjectId") {
                headers.set("x-goog-user-project", project)?;
            }
        }
        Some(key) => headers.set("x-goog-api-key", key.expose())?,
        None => {}
    }
    add_headers(&mut headers, &spec.headers)?;
    let url =
        format!("{}/publishers/google/models/{}:{}", place(spec, key)?, spec.id(), method(spec, request));
    Ok(RequestHead { url, headers })
}

/// The address up to the publisher.
fn place(spec: &ModelSpec, key: Option<&ProviderKey>) -> Result<String, NetError> {
    let location = region_name::checked(key.and_then(|key| key.part("location")).unwrap_or(GLOBAL))?;
    let host = match spec.base_url.as_str() {
        "" if location == GLOBAL => "https://aiplatform.googleapis.com".to_owned(),
        "" => format!("https://{location}-aiplatform.googleapis.com"),
        written => written.replace(PLACEHOLDER, location),
    };
    let has_version = ["/v1", "/v1beta1"].iter().any(|version| host.ends_with(version));
    let base = if has_version { host } else { format!("{host}/{VERSION}") };
    Ok(match key.and_then(|key| key.part("projectId")) {
        Some(project) => format!("{base}/projects/{project}/locations/{location}"),
        None => base,
    })
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    fn built(base: &str, key: &str) -> (String, Vec<(String, String)>) {
        let mut spec = ModelSpec::sample("google-vertex", "gemini-3-pro-preview", "google-vertex");
        base.clone_into(&mut spec.base_url);
        let key = ProviderKey::from(SecretString::from(key));
        let built = head(&spec, Some(&key), &ModelRequest::default()).unwrap();
        let shown = |name: &str| name.starts_with("authorization") || name.starts_with("x-goog");
        let headers = built.headers.pairs().into_iter().filter(|(name, _)| shown(name)).collect();
        (built.url, headers)
    }

    #[test]
    fn the_address_is_made_of_project_and_place() {
        let key = |location: &str| {
            format!("{{\"token\":\"ya29.x\",\"projectId\":\"p1\",\"location\":\"{location}\"}}")
        };
        let end = "publishers/google/models/gemini-3-pro-preview:streamGenerateContent?alt=sse";
        let rows = [
            (
                "",
                "europe-west4",
                "https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/p1/locations/europe-west4",
            ),
            ("", "global", "https://aiplatform.googleapis.com/v1beta1/projects/p1/locations/global"),
            (
                "https://{location}-aiplatform.googleapis.com",
                "us-east1",
                "https://us-east1-aiplatform.googleapis.com/v1beta1/projects/p1/locations/us-east1",
            ),
            ("http://127.0.0.1:1/v1", "us-east1", "http://127.0.0.1:1/v1/projects/p1/locations/us-east1"),
        ];
        for (base, location, expect) in rows {
            let (url, headers) = built(base, &key(location));
            assert_eq!(url, format!("{expect}/{end}"), "{base} {location}");
            assert_eq!(headers, [("authorization".to_owned(), "Bearer ya29.x".to_owned())]);
        }
        let (url, headers) = built("", "AIza-key");
        assert_eq!(url, format!("https://aiplatform.googleapis.com/v1beta1/{end}"));
        assert_eq!(headers, [("x-goog-api-key".to_owned(), "AIza-key".to_owned())]);
    }

    #[test]
    fn no_location_makes_another_host_of_the_address() {
        for base in ["", "https://{location}-aiplatform.googleapis.com"] {
            let mut spec = ModelSpec::sample("google-vertex", "gemini-3-pro-preview", "google-vertex");
            base.clone_into(&mut spec.base_url);
            let location = "127.0.0.1:47812/evil?";
            let key = format!("{{\"token\":\"t\",\"projectId\":\"p\",\"location\":\"{location}\"}}");
            let key = ProviderKey::from(SecretString::from(key));
            let refused = head(&spec, Some(&key), &ModelRequest::default()).map(|built| built.url);
            assert_eq!(refused, Err(NetError::Region(location.to_owned())));
        }
    }

    #[test]
    fn who_pays_is_told() {
        let key = r#"{"token":"t","projectId":"p","location":"global","quotaProjectId":"payer"}"#;
        let (_, headers) = built("", key);
        assert!(headers.contains(&("x-goog-user-project".to_owned(), "payer".to_owned())), "{headers:?}");
    }
}
