//! The second half of the handshake: device token, scopes and pairing (spec `gateway-protocol.md` §3.3 steps 12 to 15).

use openclaw_protocol::access::{self, Role};

use super::device::VerifiedDevice;
use super::machine::{Claim, ClaimedDevice, ConnectRefusal, Proof, text};
use crate::pairing::{Announcement, ConnectingDevice, DeviceToken, PairingBook, PairingDecision};

/// A client that comes in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AdmittedClient {
    /// The scopes in force.
    pub(crate) scopes: Vec<String>,
    /// The token of its device, for `hello-ok.auth`.
    pub(crate) token: Option<DeviceToken>,
}

/// Decision on a claim, and the announcement to operators who may pair devices.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settlement {
    /// Entry, or refusal.
    pub(crate) outcome: Result<AdmittedClient, Box<ConnectRefusal>>,
    /// Announcement for operators with the pairing scope.
    pub(crate) announcement: Option<Announcement>,
}

impl Settlement {
    fn quiet(outcome: Result<AdmittedClient, Box<ConnectRefusal>>) -> Self {
        Self { outcome, announcement: None }
    }

    /// Decision for when nothing can be written down, as on a full disk: whoever may come in does,
    /// but without a new token, since that would be lost. `None` where all that was to come of it
    /// is a request to be paired, which is not kept.
    pub(crate) fn unkept(self) -> Option<Self> {
        match self.outcome {
            Ok(entry) => Some(Self::quiet(Ok(AdmittedClient { token: None, ..entry }))),
            Err(_) if self.announcement.is_some() => None,
            Err(refusal) => Some(Self::quiet(Err(refusal))),
        }
    }
}

/// Settles a claim against the paired devices. `mint` makes random UUIDs.
pub(crate) fn settle(
    claim: &Claim,
    book: &mut PairingBook,
    now: i64,
    mint: &mut dyn FnMut() -> String,
) -> Settlement {
    let scopes = match authorize(claim, book, now) {
        Ok(scopes) => scopes,
        Err(refusal) => return Settlement::quiet(Err(refusal)),
    };
    let ClaimedDevice::Pairing(device) = &claim.device else {
        return Settlement::quiet(Ok(AdmittedClient { scopes, token: None }));
    };
    match book.settle(&connecting(claim, device, &scopes), now, mint) {
        PairingDecision::Admitted(admission) => Settlement {
            outcome: Ok(AdmittedClient { scopes, token: Some(admission.token) }),
            announcement: admission.announcement,
        },
        PairingDecision::PairingRequired { request_id, announcement } => Settlement {
            outcome: Err(ConnectRefusal::pairing_required(&claim.request_id, &request_id)),
            announcement,
        },
    }
}

/// The scopes in force. Without any, the shared secret gives an operator admin, a device token what it is for (KB-6).
fn authorize(claim: &Claim, book: &mut PairingBook, now: i64) -> Result<Vec<String>, Box<ConnectRefusal>> {
    match &claim.proof {
        Proof::Shared if claim.scopes.is_empty() && claim.role == Role::Operator => {
            Ok(vec![access::ADMIN.to_owned()])
        }
        Proof::Shared => Ok(claim.scopes.clone()),
        Proof::DeviceToken { token, otherwise } => {
            let refusal = || ConnectRefusal::unauthorized(&claim.request_id, *otherwise, &claim.client);
            let device = claim.device.verified().ok_or_else(refusal)?;
            match book.verify_token(&device.id, claim.role, token, &claim.scopes, now) {
                Ok(held) if claim.scopes.is_empty() => Ok(held.scopes.clone()),
                Ok(_) => Ok(claim.scopes.clone()),
                Err(reason) => {
                    tracing::debug!(device = %device.id, ?reason, "device token refused");
                    Err(refusal())
                }
            }
        }
    }
}

fn connecting(claim: &Claim, device: &VerifiedDevice, scopes: &[String]) -> ConnectingDevice {
    ConnectingDevice {
        device_id: device.id.clone(),
        public_key: device.public_key.clone(),
        display_name: text(claim.client.display_name.as_ref()),
        platform: claim.client.platform.0.clone(),
        client_id: claim.client.id.as_str().to_owned(),
        client_mode: claim.client.mode.as_str().to_owned(),
        role: claim.role,
        scopes: scopes.to_vec(),
        remote_ip: claim.address.remote_ip().map(|ip| ip.to_string()),
        is_local: claim.address.is_local,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::tests::client;
    use crate::handshake::client_address::{ClientAddress, ClientIp};
    use crate::handshake::shared_auth::{AuthFailure, SecretProblem};
    use openclaw_config::settings::AuthKind;
    use openclaw_protocol::access::{ADMIN, READ};
    use openclaw_protocol::params::connect::{ClientId, ClientMode};

    fn claim(proof: Proof, is_local: bool, role: Role, scopes: &[&str]) -> Claim {
        let address = if is_local { "127.0.0.1" } else { "192.168.1.5" }.parse().unwrap();
        let ip = ClientIp { address, is_forwarded: false };
        let device = VerifiedDevice { id: "dev".to_owned(), public_key: "key".to_owned() };
        Claim {
            request_id: "c1".to_owned(),
            client: client(ClientId::Cli, ClientMode::Cli),
            caps: Vec::new(),
            role,
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            proof,
            device: ClaimedDevice::Pairing(device),
            address: ClientAddress { ip, is_local, has_untrusted_proxy_headers: false },
        }
    }

    const MISMATCH: AuthFailure = AuthFailure { kind: AuthKind::Token, problem: SecretProblem::Mismatch };

    fn shared() -> Proof {
        Proof::Shared
    }

    fn with_token(token: &str) -> Proof {
        Proof::DeviceToken { token: token.to_owned(), otherwise: MISMATCH }
    }

    fn run(book: &mut PairingBook, claim: &Claim) -> Result<Vec<String>, String> {
        let settlement = settle(claim, book, 1, &mut || "to-ken".to_owned());
        settlement.outcome.map(|entry| entry.scopes).map_err(|refusal| refusal.closing.reason)
    }

    /// Decision 12.
    #[test]
    fn without_scopes_the_secret_gives_admin_and_a_device_token_what_it_is_for() {
        let mut book = PairingBook::default();
        assert_eq!(
            run(&mut book, &claim(shared(), true, Role::Operator, &[READ])),
            Ok(vec![READ.to_owned()])
        );
        let by_token = |scopes: &[&str], token| claim(with_token(token), true, Role::Operator, scopes);
        assert_eq!(run(&mut book, &by_token(&[], "token")), Ok(vec![READ.to_owned()]));
        assert_eq!(run(&mut book, &by_token(&[READ], "token")), Ok(vec![READ.to_owned()]));
        let mismatch = MISMATCH.message(&client(ClientId::Cli, ClientMode::Cli));
        assert_eq!(run(&mut book, &by_token(&[ADMIN], "token")), Err(mismatch.clone()));
        assert_eq!(run(&mut book, &by_token(&[], "other")), Err(mismatch));
        assert_eq!(run(&mut book, &claim(shared(), true, Role::Operator, &[])), Ok(vec![ADMIN.to_owned()]));
        assert_eq!(run(&mut book, &claim(shared(), true, Role::Node, &[])), Ok(Vec::new()));
    }

    #[test]
    fn only_devices_that_must_be_paired_are() {
        let mut book = PairingBook::default();
        assert_eq!(
            run(&mut book, &claim(shared(), false, Role::Operator, &[])),
            Err("pairing required".to_owned())
        );
        for device in [
            ClaimedDevice::None,
            ClaimedDevice::Unpaired(VerifiedDevice { id: "d".into(), public_key: "k".into() }),
        ] {
            let free = Claim { device, ..claim(shared(), false, Role::Operator, &[]) };
            assert_eq!(run(&mut book, &free), Ok(vec![ADMIN.to_owned()]));
        }
        assert!(book.paired.is_empty());
    }
}
