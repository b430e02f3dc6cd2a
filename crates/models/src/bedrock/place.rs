//! Region and address of a Bedrock call.

use url::{Host, Url};

use crate::model_spec::ModelSpec;
use crate::net::NetError;
use crate::provider_key::ProviderKey;
use crate::region_name;

/// The region when nothing names one.
pub(crate) const DEFAULT_REGION: &str = "us-east-1";

/// The region a call is made in and signed for: the one in the address, in the model's ARN, of the credentials.
pub(super) fn region(spec: &ModelSpec, key: Option<&ProviderKey>) -> String {
    let found = region_of_address(&spec.base_url).or_else(|| region_of_arn(spec.id()).map(str::to_owned));
    let of_key = || key.and_then(|key| key.part("region")).map(str::to_owned);
    found.or_else(of_key).unwrap_or_else(|| DEFAULT_REGION.to_owned())
}

/// Returns the address of a call without a trailing slash: the owner's, else the region's.
pub(super) fn base_url(spec: &ModelSpec, key: Option<&ProviderKey>) -> Result<String, NetError> {
    if spec.base_url.is_empty() { runtime_address(&region(spec, key)) } else { Ok(spec.base_url.clone()) }
}

/// Returns the address at which models are called.
pub(super) fn runtime_address(region: &str) -> Result<String, NetError> {
    address("bedrock-runtime", region)
}

/// Returns the address at which models are listed.
pub(super) fn control_address(region: &str) -> Result<String, NetError> {
    address("bedrock", region)
}

fn address(service: &str, region: &str) -> Result<String, NetError> {
    let region = region_name::checked(region)?;
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    Ok(format!("https://{service}.{region}.{domain}"))
}

/// Of `https://bedrock-runtime.eu-west-1.amazonaws.com` and its like: what follows the service's name.
fn region_of_address(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let Some(Host::Domain(host)) = url.host() else { return None };
    if !host.contains("amazonaws.com") {
        return None;
    }
    let mut labels = host.split('.').skip_while(|label| !label.starts_with("bedrock"));
    labels.next()?;
    labels.next().filter(|label| label.contains('-')).map(str::to_owned)
}

/// Of `arn:aws:bedrock:eu-west-1:123456789012:inference-profile/x`.
fn region_of_arn(model: &str) -> Option<&str> {
    let mut parts = model.strip_prefix("arn:")?.split(':');
    parts.nth(2).filter(|region| !region.is_empty())
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;

    #[test]
    fn the_region_is_the_nearest_one_named() {
        let arn = "arn:aws:bedrock:ap-south-1:123456789012:inference-profile/x";
        let rows = [
            ("", "m", None, "us-east-1"),
            ("", "m", Some("eu-west-1"), "eu-west-1"),
            ("", arn, Some("eu-west-1"), "ap-south-1"),
            ("https://bedrock-runtime.us-west-2.amazonaws.com", arn, Some("eu-west-1"), "us-west-2"),
            ("https://bedrock-runtime-fips.us-gov-west-1.amazonaws.com", "m", None, "us-gov-west-1"),
            ("https://vpce-1.bedrock-runtime.eu-north-1.vpce.amazonaws.com", "m", None, "eu-north-1"),
            ("https://proxy.example.com/bedrock", "m", Some("eu-west-1"), "eu-west-1"),
            ("http://127.0.0.1:1", "m", None, "us-east-1"),
        ];
        for (base, id, of_key, expect) in rows {
            let mut spec = ModelSpec::sample("amazon-bedrock", id, "bedrock-converse-stream");
            base.clone_into(&mut spec.base_url);
            let key = of_key.map(|region| {
                ProviderKey::from(SecretString::from(format!("{{\"token\":\"t\",\"region\":\"{region}\"}}")))
            });
            assert_eq!(region(&spec, key.as_ref()), expect, "{base} {id}");
        }
    }

    #[test]
    fn the_address_follows_from_the_region() {
        let mut spec = ModelSpec::sample("amazon-bedrock", "m", "bedrock-converse-stream");
        let address = |region: &str| Ok(format!("https://bedrock-runtime.{region}"));
        assert_eq!(base_url(&spec, None), Ok("http://127.0.0.1:1".to_owned()));
        spec.base_url.clear();
        assert_eq!(base_url(&spec, None), address("us-east-1.amazonaws.com"));
        assert_eq!(runtime_address("cn-north-1"), address("cn-north-1.amazonaws.com.cn"));
    }

    #[test]
    fn no_region_makes_another_host_of_the_address() {
        let region = "@127.0.0.1:47812/";
        let mut spec = ModelSpec::sample("amazon-bedrock", "m", "bedrock-converse-stream");
        spec.base_url.clear();
        let key =
            ProviderKey::from(SecretString::from(format!("{{\"token\":\"t\",\"region\":\"{region}\"}}")));
        assert_eq!(base_url(&spec, Some(&key)), Err(NetError::Region(region.to_owned())));
        assert_eq!(control_address("a.b"), Err(NetError::Region("a.b".to_owned())));
    }
}
