//! Device identity: the Ed25519 key of a client and its signature over the handshake (spec `gateway-protocol.md` §3.5).

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use ed25519_dalek::pkcs8::DecodePublicKey;
use ed25519_dalek::{Signature, VerifyingKey};
use openclaw_protocol::device::{SigningPayload, signing_payload};
use sha2::{Digest, Sha256};

/// A signature is accepted this long before and after its time, in milliseconds.
pub(crate) const MAX_SKEW_MS: u64 = 600_000;

/// base64url as clients write it, padded or not.
const URL: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// `connect.device`, as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeviceClaim<'a> {
    /// The id the client says it has.
    pub(crate) id: &'a str,
    /// base64url, base64 or PEM.
    pub(crate) public_key: &'a str,
    /// base64url.
    pub(crate) signature: &'a str,
    /// Unix milliseconds.
    pub(crate) signed_at: u64,
    /// Present in version 2 of the payload.
    pub(crate) nonce: Option<&'a str>,
}

/// Facts that a signature covers besides the device's own fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignedFacts<'a> {
    /// `client.id`
    pub(crate) client_id: &'a str,
    /// `client.mode`
    pub(crate) client_mode: &'a str,
    /// The role in force.
    pub(crate) role: &'a str,
    /// The scopes as sent.
    pub(crate) scopes: &'a [String],
    /// `auth.token` as sent.
    pub(crate) token: Option<&'a str>,
}

/// A device that has proved who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerifiedDevice {
    /// Lower-case hex SHA-256 of the raw public key.
    pub(crate) id: String,
    /// base64url of the raw public key.
    pub(crate) public_key: String,
}

/// Reason why a device identity was not accepted. The text goes to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DeviceRefusal {
    /// The id is not that of the key.
    #[error("device identity mismatch")]
    IdentityMismatch,
    /// Signed too long ago, or in the future.
    #[error("device signature expired")]
    Expired,
    /// Only local clients may sign without nonce.
    #[error("device nonce required")]
    NonceRequired,
    /// The nonce belongs to another connection.
    #[error("device nonce mismatch")]
    NonceMismatch,
    /// The signature is not by the key over these facts.
    #[error("device signature invalid")]
    SignatureInvalid,
}

/// Verifies a device identity, in the order that clients observe.
///
/// # Errors
/// The first thing that is wrong.
pub(crate) fn verify(
    device: &DeviceClaim<'_>,
    facts: &SignedFacts<'_>,
    nonce: &str,
    is_local: bool,
    now: i64,
) -> Result<VerifiedDevice, DeviceRefusal> {
    let key = public_key(device.public_key).ok_or(DeviceRefusal::IdentityMismatch)?;
    let id = device_id(&key);
    if id != device.id {
        return Err(DeviceRefusal::IdentityMismatch);
    }
    if now.max(0).cast_unsigned().abs_diff(device.signed_at) > MAX_SKEW_MS {
        return Err(DeviceRefusal::Expired);
    }
    match device.nonce {
        None if !is_local => return Err(DeviceRefusal::NonceRequired),
        Some(given) if given != nonce => return Err(DeviceRefusal::NonceMismatch),
        None | Some(_) => {}
    }
    let bytes = URL.decode(url_alphabet(device.signature)).map_err(|_| DeviceRefusal::SignatureInvalid)?;
    let signature = Signature::from_slice(&bytes).map_err(|_| DeviceRefusal::SignatureInvalid)?;
    let signed = signing_payload(&SigningPayload {
        device_id: device.id,
        client_id: facts.client_id,
        client_mode: facts.client_mode,
        role: facts.role,
        scopes: facts.scopes,
        signed_at_ms: device.signed_at,
        token: facts.token,
        nonce: device.nonce,
    });
    key.verify_strict(signed.as_bytes(), &signature).map_err(|_| DeviceRefusal::SignatureInvalid)?;
    Ok(VerifiedDevice { id, public_key: URL.encode(key.as_bytes()) })
}

fn public_key(text: &str) -> Option<VerifyingKey> {
    if text.contains("BEGIN PUBLIC KEY") {
        return VerifyingKey::from_public_key_pem(text.trim()).ok();
    }
    let bytes = URL.decode(url_alphabet(text)).ok()?;
    VerifyingKey::from_bytes(&<[u8; 32]>::try_from(bytes).ok()?).ok()
}

/// base64 in its URL form.
fn url_alphabet(text: &str) -> String {
    let plain = |c| match c {
        '+' => '-',
        '/' => '_',
        c => c,
    };
    text.trim().chars().map(plain).collect()
}

fn device_id(key: &VerifyingKey) -> String {
    Sha256::digest(key.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::STANDARD;
    use ed25519_dalek::pkcs8::EncodePublicKey;

    const ID: &str = "34750f98bd59fcfc946da45aaabe933be154a4b5094e1c4abf42866505f3c97e";
    const KEY: &str = "iojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w";
    const V2: &str = "nQpG9J9MSX7Xm5z6H2TRD-hk-0ekpHaAOpAm2VsSevxsZHnNdBnmp70wMRQk4kwaDkW3Lovx8ruJqcr86T-oAA";
    const V1: &str = "AaxNtk5Wpau63sBG4g6qu7KTT0ymc1bg-EfwC4_lsIZAOunZu1uSbk4LNXhjml8VVt2H3aumPYYnxP1jhgAHBQ";
    const NODE: &str =
        "P59zVayDjf4sSuO_0OdXTG5bQSepdh4-vkkhRasulMB0TYZ8t1ll-OPXk-ASpFTWs2xr8ICsZ7VXULnDm-ZsDA";
    const NONCE: &str = "11111111-2222-4333-8444-555555555555";
    const AT: i64 = 1_770_000_000_000;

    fn claim<'a>(signature: &'a str, nonce: Option<&'a str>) -> DeviceClaim<'a> {
        DeviceClaim { id: ID, public_key: KEY, signature, signed_at: AT.unsigned_abs(), nonce }
    }

    fn operator<'a>(scopes: &'a [String], token: Option<&'a str>) -> SignedFacts<'a> {
        SignedFacts { client_id: "cli", client_mode: "cli", role: "operator", scopes, token }
    }

    fn scopes(list: &[&str]) -> Vec<String> {
        list.iter().map(|scope| (*scope).to_owned()).collect()
    }

    /// The published vectors of §3.5.
    #[test]
    fn published_signatures_verify() {
        let all = scopes(&["operator.admin", "operator.approvals", "operator.pairing"]);
        let admin = scopes(&["operator.admin"]);
        let node = SignedFacts {
            client_id: "node-host",
            client_mode: "node",
            role: "node",
            scopes: &[],
            token: None,
        };
        let rows = [
            (claim(V2, Some(NONCE)), operator(&all, Some("tok-123")), NONCE, false),
            (claim(V1, None), operator(&admin, None), NONCE, true),
            (claim(NODE, Some("n-1")), node, "n-1", false),
        ];
        let expect = Ok(VerifiedDevice { id: ID.to_owned(), public_key: KEY.to_owned() });
        for (device, facts, nonce, is_local) in rows {
            assert_eq!(verify(&device, &facts, nonce, is_local, AT), expect, "{device:?}");
        }
    }

    #[test]
    fn keys_are_accepted_in_every_form_and_kept_in_one() {
        let key = public_key(KEY).unwrap();
        let forms = [
            KEY.to_owned(),
            STANDARD.encode(key.as_bytes()),
            key.to_public_key_pem(ed25519_dalek::pkcs8::spki::der::pem::LineEnding::LF).unwrap(),
        ];
        let admin = scopes(&["operator.admin"]);
        for form in &forms {
            let device = DeviceClaim { public_key: form, ..claim(V1, None) };
            let verified = verify(&device, &operator(&admin, None), NONCE, true, AT).unwrap();
            assert_eq!(verified.public_key, KEY, "{form}");
        }
    }

    #[test]
    fn the_first_thing_wrong_is_told() {
        let admin = scopes(&["operator.admin"]);
        let facts = operator(&admin, None);
        let limit = i64::try_from(MAX_SKEW_MS).unwrap();
        let good = claim(V1, None);
        let rows = [
            (good, true, AT + limit, None),
            (good, true, AT - limit, None),
            (DeviceClaim { id: "00", ..good }, true, AT, Some(DeviceRefusal::IdentityMismatch)),
            (DeviceClaim { public_key: "no key", ..good }, true, AT, Some(DeviceRefusal::IdentityMismatch)),
            (good, true, AT + limit + 1, Some(DeviceRefusal::Expired)),
            (good, true, AT - limit - 1, Some(DeviceRefusal::Expired)),
            (DeviceClaim { signed_at: u64::MAX, ..good }, true, AT, Some(DeviceRefusal::Expired)),
            (good, false, AT, Some(DeviceRefusal::NonceRequired)),
            (DeviceClaim { nonce: Some("other"), ..good }, true, AT, Some(DeviceRefusal::NonceMismatch)),
            (DeviceClaim { nonce: Some(NONCE), ..good }, true, AT, Some(DeviceRefusal::SignatureInvalid)),
            (DeviceClaim { signature: "AAAA", ..good }, true, AT, Some(DeviceRefusal::SignatureInvalid)),
            (DeviceClaim { signature: "!", ..good }, true, AT, Some(DeviceRefusal::SignatureInvalid)),
        ];
        for (device, is_local, now, expect) in rows {
            assert_eq!(verify(&device, &facts, NONCE, is_local, now).err(), expect, "{device:?} {now}");
        }
        let other = operator(&admin, Some("tok-123"));
        assert_eq!(verify(&good, &other, NONCE, true, AT).err(), Some(DeviceRefusal::SignatureInvalid));
    }
}
