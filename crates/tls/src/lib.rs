//! TLS settings of the HTTP clients. The system's root certificates are read once for the process,
//! and only when the first server shows a certificate: that takes 10 to 20 ms and hundreds of
//! system calls, which a gateway whose model server is on this machine never needs.
//!
//! Begin at [`client_config`].

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// Protocols that a server may choose from: HTTP/2, else HTTP/1.1 (RFC 7301).
const HTTP_2_OR_1: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Makes `ring` the TLS provider of the process. Call it once, early in `main`; more calls do
/// nothing.
pub fn install_provider() {
    // The error says that a provider is installed already, which is what we want.
    let _ = ring::default_provider().install_default();
}

/// Version of HTTP that a client offers to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVersions {
    /// HTTP/1.1 alone.
    One,
    /// HTTP/2, or HTTP/1.1 where the server prefers that.
    OneAndTwo,
}

/// Returns the settings of a client that trusts the system's root certificates. Reads nothing yet.
///
/// # Errors
/// If the TLS provider can't be used.
pub fn client_config(versions: HttpVersions) -> Result<ClientConfig, Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(SystemRoots(Arc::clone(&provider)));
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth();
    if versions == HttpVersions::OneAndTwo {
        config.alpn_protocols = HTTP_2_OR_1.map(<[u8]>::to_vec).to_vec();
    }
    Ok(config)
}

/// Reads the system's root certificates, if that was not done yet. Blocks on the disk; an error is
/// told by the handshakes that follow.
pub fn load_roots() {
    let _ = verifier(&Arc::new(ring::default_provider()));
}

/// True if the system's root certificates were read.
pub fn has_roots() -> bool {
    VERIFIER.get().is_some()
}

/// Verifier of the process, once its certificates were read. A failure is tried again with the
/// next connection.
static VERIFIER: OnceLock<Verifier> = OnceLock::new();

fn verifier(provider: &Arc<CryptoProvider>) -> Result<&'static Verifier, Error> {
    if let Some(verifier) = VERIFIER.get() {
        return Ok(verifier);
    }
    let read = Verifier::new(Arc::clone(provider))?;
    Ok(VERIFIER.get_or_init(|| read))
}

/// Checks certificates against the system's roots, which are read for the first of them.
#[derive(Debug)]
struct SystemRoots(Arc<CryptoProvider>);

impl ServerCertVerifier for SystemRoots {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        verifier(&self.0)?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verifier(&self.0)?.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verifier(&self.0)?.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_read_for_the_first_check_and_no_earlier() {
        let roots = SystemRoots(Arc::new(ring::default_provider()));
        assert!(!roots.supported_verify_schemes().is_empty());
        let config = client_config(HttpVersions::OneAndTwo).unwrap();
        assert_eq!(config.alpn_protocols, HTTP_2_OR_1.map(<[u8]>::to_vec));
        assert!(client_config(HttpVersions::One).unwrap().alpn_protocols.is_empty());
        assert!(!has_roots());

        let name = ServerName::try_from("example.com").unwrap();
        let forged = CertificateDer::from(&b"not a certificate"[..]);
        assert!(roots.verify_server_cert(&forged, &[], &name, &[], UnixTime::now()).is_err());
        let read = Verifier::new(Arc::new(ring::default_provider()));
        assert_eq!(has_roots(), read.is_ok());
    }
}
