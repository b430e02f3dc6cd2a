//! The decision on the first frame of a socket, step by step in the order that clients observe
//! (spec `gateway-protocol.md` §3.3). Values in, values out.

use openclaw_config::settings::ControlUi;
use openclaw_protocol::Payload;
use openclaw_protocol::access::Role;
use openclaw_protocol::error::ErrorShape;
use openclaw_protocol::frame::{Envelope, Inbound, PROTOCOL_VERSION, Response, parse_inbound};
use openclaw_protocol::params::connect::{ClientDescription, Connect, ConnectParams, DeviceProof};
use openclaw_protocol::params::{Call, NonEmpty};
use serde_json::json;

use super::client_address::{AddressBook, ClientAddress, Origination};
use super::client_kind::{is_browser, is_control_ui};
use super::close::Closing;
use super::device::{self, DeviceClaim, SignedFacts, VerifiedDevice};
use super::origin::{self, PageRules};
use super::shared_auth::{AuthFailure, Credentials, SharedSecret, authorize};

/// Requirements for clients that connect.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    /// The shared secret.
    pub(crate) secret: SharedSecret,
    /// Addresses that count as local.
    pub(crate) addresses: AddressBook,
    /// `gateway.controlUi`
    pub(crate) control_ui: ControlUi,
    /// Pages that may connect.
    pub(crate) pages: PageRules,
}

/// Attempt of a client to come in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectAttempt<'a> {
    /// The client's address and headers.
    pub(crate) origination: &'a Origination,
    /// Address found by [`ClientAddress::of`].
    pub(crate) address: ClientAddress,
    /// The nonce of this connection's challenge.
    pub(crate) nonce: &'a str,
    /// Milliseconds this address has to wait for after too many wrong secrets.
    pub(crate) locked_for: Option<i64>,
    /// Unix milliseconds.
    pub(crate) now: i64,
}

/// A client that stays outside.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConnectRefusal {
    /// The answer to its request; some mistakes get none.
    pub(crate) response: Option<Response<Payload>>,
    /// Close code and reason for the socket.
    pub(crate) closing: Closing,
    /// True if a wrong secret was given.
    pub(crate) is_guess: bool,
}

/// A client that may come in as far as its first frame tells; its device token and pairing are still to be looked up.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claim {
    /// Id of the `connect` request.
    pub(crate) request_id: String,
    /// The client's words about itself.
    pub(crate) client: ClientDescription,
    /// Capability labels.
    pub(crate) caps: Vec<String>,
    /// The role it takes.
    pub(crate) role: Role,
    /// The scopes as sent.
    pub(crate) scopes: Vec<String>,
    /// Proof that the client may come in.
    pub(crate) proof: Proof,
    /// Device of the client.
    pub(crate) device: ClaimedDevice,
    /// Address of the client.
    pub(crate) address: ClientAddress,
}

/// Proof that a client may come in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Proof {
    /// The client knows the shared secret.
    Shared,
    /// The client gave something else, which may be the token of its device.
    DeviceToken {
        /// `auth.token`
        token: String,
        /// Error for the client if it isn't.
        otherwise: AuthFailure,
    },
}

/// A client's device.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClaimedDevice {
    /// The client has no device.
    None,
    /// The client has a device that need not be paired (a Control UI for which the config waives
    /// it).
    Unpaired(VerifiedDevice),
    /// The client has a device that must be paired.
    Pairing(VerifiedDevice),
}

impl ClaimedDevice {
    /// The verified device, if any.
    pub(crate) fn verified(&self) -> Option<&VerifiedDevice> {
        match self {
            Self::None => None,
            Self::Unpaired(device) | Self::Pairing(device) => Some(device),
        }
    }
}

/// Judges the first frame of a socket.
///
/// # Errors
/// The refusal of the first step that fails.
pub(crate) fn judge(
    door: &Door,
    attempt: &ConnectAttempt<'_>,
    text: &str,
) -> Result<Claim, Box<ConnectRefusal>> {
    let request = first_request(text)?;
    let params = connect_params(&request)?;
    let refuse = |error: ErrorShape| ConnectRefusal::answered(&request.id, error);
    if params.max_protocol < PROTOCOL_VERSION.into() || params.min_protocol > PROTOCOL_VERSION.into() {
        return Err(ConnectRefusal::protocol_mismatch(&request.id));
    }
    let role = params.role.as_ref().map_or(Some(Role::Operator), |role| Role::parse(&role.0));
    let role = role.ok_or_else(|| refuse(ErrorShape::invalid("invalid role")))?;
    // Only browsers send an origin: a page that calls itself something else is still a page.
    let from_a_page = is_browser(&params.client) || attempt.origination.origin.is_some();
    if from_a_page && !door.admits_origin(attempt.origination) {
        return Err(refuse(ErrorShape::invalid(origin::REFUSAL)));
    }
    if let Some(wait) = attempt.locked_for {
        return Err(ConnectRefusal::locked_out(&request.id, wait));
    }
    let shared = authorize(&door.secret, credentials(&params));
    if let Some(failure) = wrong_without_device(door, &params, shared) {
        return Err(ConnectRefusal::unauthorized(&request.id, failure, &params.client));
    }
    let device = claimed_device(door, attempt, &params, role, shared).map_err(refuse)?;
    let proof = match (shared, &device, token(&params)) {
        (Ok(()), _, _) => Proof::Shared,
        (Err(otherwise), ClaimedDevice::Pairing(_) | ClaimedDevice::Unpaired(_), Some(token)) => {
            Proof::DeviceToken { token: token.to_owned(), otherwise }
        }
        (Err(failure), _, _) => {
            return Err(ConnectRefusal::unauthorized(&request.id, failure, &params.client));
        }
    };
    if role == Role::Node && !params.declares_anything() {
        return Err(refuse(ErrorShape::invalid("a node must declare caps, commands or permissions")));
    }
    Ok(Claim {
        request_id: request.id,
        caps: params.caps.iter().flatten().map(|cap| cap.0.clone()).collect(),
        scopes: params.scope_list(),
        client: params.client,
        role,
        proof,
        device,
        address: attempt.address,
    })
}

/// Steps 1 to 3: JSON, a request frame, `connect`.
fn first_request(text: &str) -> Result<Envelope<'_>, Box<ConnectRefusal>> {
    let request = match parse_inbound(text) {
        Inbound::Request(request) => request,
        Inbound::NotJson | Inbound::Invalid { .. } => {
            return Err(ConnectRefusal::silent("invalid request frame"));
        }
    };
    if request.method != Connect::NAME {
        let error = ErrorShape::invalid("invalid handshake: first request must be connect");
        return Err(ConnectRefusal::answered(&request.id, error));
    }
    Ok(request)
}

/// Step 4: the schema.
fn connect_params(request: &Envelope<'_>) -> Result<ConnectParams, Box<ConnectRefusal>> {
    let read = request.params().and_then(|params| Connect::read(Some(params)));
    read.map_err(|error| ConnectRefusal::answered(&request.id, error))
}

/// Steps 10 and 11: whether a device identity is needed, and whether a given one is genuine.
fn claimed_device(
    door: &Door,
    attempt: &ConnectAttempt<'_>,
    params: &ConnectParams,
    role: Role,
    shared: Result<(), AuthFailure>,
) -> Result<ClaimedDevice, ErrorShape> {
    let control_ui = is_control_ui(&params.client);
    let is_waived = |role| control_ui && role == Role::Operator && door.waives_devices();
    let Some(proof) = door.device_of(params) else {
        return match shared {
            _ if control_ui && !door.waives_devices() => {
                Err(ErrorShape::invalid("control ui requires HTTPS or localhost (secure context)"))
            }
            Ok(()) if is_waived(role) || !needs_device(attempt, role) => Ok(ClaimedDevice::None),
            Ok(()) | Err(_) => Err(ErrorShape::not_paired("device identity required")),
        };
    };
    let claim = DeviceClaim {
        id: &proof.id.0,
        public_key: &proof.public_key.0,
        signature: &proof.signature.0,
        signed_at: proof.signed_at,
        nonce: proof.nonce.as_ref().map(|nonce| nonce.0.as_str()),
    };
    let facts = SignedFacts {
        client_id: params.client.id.as_str(),
        client_mode: params.client.mode.as_str(),
        role: role.as_str(),
        scopes: &params.scope_list(),
        token: params.auth.as_ref().and_then(|auth| auth.token.as_deref()),
    };
    let device = device::verify(&claim, &facts, attempt.nonce, attempt.address.is_local, attempt.now)
        .map_err(|refusal| ErrorShape::invalid(refusal.to_string()))?;
    Ok(if is_waived(role) && shared.is_ok() {
        ClaimedDevice::Unpaired(device)
    } else {
        ClaimedDevice::Pairing(device)
    })
}

/// True if the shared secret alone lets nobody in. A node is known by its device; a client behind a
/// proxy could be anybody who has read the secret somewhere, so its device has to be approved as
/// well.
fn needs_device(attempt: &ConnectAttempt<'_>, role: Role) -> bool {
    role == Role::Node || attempt.address.ip.is_forwarded
}

/// Step 10 for those without a device who gave a wrong secret.
fn wrong_without_device(
    door: &Door,
    params: &ConnectParams,
    shared: Result<(), AuthFailure>,
) -> Option<AuthFailure> {
    let needs_device = is_control_ui(&params.client) && !door.waives_devices();
    let is_wrong = door.device_of(params).is_none() && !needs_device && !credentials(params).is_empty();
    shared.err().filter(|_| is_wrong)
}

impl Door {
    /// The device a client gave, unless the config says not to look at it.
    fn device_of<'a>(&self, params: &'a ConnectParams) -> Option<&'a DeviceProof> {
        let is_ignored = is_control_ui(&params.client) && self.control_ui.dangerously_disable_device_auth;
        params.device.as_ref().filter(|_| !is_ignored)
    }

    /// True if a Control UI may connect without a device.
    fn waives_devices(&self) -> bool {
        self.control_ui.allow_insecure_auth || self.control_ui.dangerously_disable_device_auth
    }

    /// True if the page that asks, or a client that says it is one, may ask.
    pub(crate) fn admits_origin(&self, origination: &Origination) -> bool {
        let (page, host) = (origination.origin.as_deref(), origination.host.as_deref());
        self.pages.admits_page(page, host, &self.addresses.own)
    }
}

fn credentials(params: &ConnectParams) -> Credentials<'_> {
    let auth = params.auth.as_ref();
    Credentials {
        token: auth.and_then(|auth| auth.token.as_deref()),
        password: auth.and_then(|auth| auth.password.as_deref()),
    }
}

fn token(params: &ConnectParams) -> Option<&str> {
    credentials(params).token.filter(|token| !token.is_empty())
}

impl ConnectRefusal {
    /// Closed without an answer.
    fn silent(reason: &str) -> Box<Self> {
        Box::new(Self { response: None, closing: Closing::policy(reason), is_guess: false })
    }

    /// Answered with an error, whose text is also the reason of the close.
    pub(crate) fn answered(request_id: &str, error: ErrorShape) -> Box<Self> {
        let closing = Closing::policy(&error.message);
        Box::new(Self { response: Some(Response::failed(request_id, error)), closing, is_guess: false })
    }

    fn protocol_mismatch(request_id: &str) -> Box<Self> {
        let error = ErrorShape::invalid("protocol mismatch")
            .with_details(json!({ "expectedProtocol": PROTOCOL_VERSION }));
        Box::new(Self { closing: Closing::protocol_mismatch(), ..*Self::answered(request_id, error) })
    }

    fn locked_out(request_id: &str, wait_ms: i64) -> Box<Self> {
        let wait_ms = wait_ms.unsigned_abs();
        let text =
            format!("unauthorized: too many failed attempts, try again in {} s", wait_ms.div_ceil(1_000));
        let error =
            ErrorShape { retryable: Some(true), retry_after_ms: Some(wait_ms), ..ErrorShape::invalid(text) };
        Self::answered(request_id, error)
    }

    /// Step 13.
    pub(crate) fn unauthorized(
        request_id: &str,
        failure: AuthFailure,
        client: &ClientDescription,
    ) -> Box<Self> {
        let refusal = Self::answered(request_id, ErrorShape::invalid(failure.message(client)));
        Box::new(Self { is_guess: failure.is_guess(), ..*refusal })
    }

    /// Step 14.
    pub(crate) fn pairing_required(request_id: &str, pairing_id: &str) -> Box<Self> {
        let error =
            ErrorShape::not_paired("pairing required").with_details(json!({ "requestId": pairing_id }));
        Self::answered(request_id, error)
    }
}

/// The text of an optional name.
pub(crate) fn text(name: Option<&NonEmpty>) -> Option<String> {
    name.map(|name| name.0.clone())
}

#[cfg(test)]
mod tests;
