//! Names of regions: they become part of a host name, so that a wrong one could lead a credential anywhere.

use crate::net::NetError;

/// Maximum length of a label of a host name.
const MAX: usize = 63;

/// The name, if it can be part of a host name without changing which host that is: letters, digits, and hyphens between them.
pub(crate) fn checked(name: &str) -> Result<&str, NetError> {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_label = (1..=MAX).contains(&name.len()) && !name.starts_with('-') && !name.ends_with('-');
    if is_plain && is_label { Ok(name) } else { Err(NetError::Region(crate::wire::glimpse(name))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_letters_digits_and_hyphens() {
        for name in
            ["us-east-1", "us-gov-west-1", "cn-north-1", "europe-west4", "global", "eu", "me-central2"]
        {
            assert_eq!(checked(name), Ok(name));
        }
        let long = "a".repeat(64);
        for name in [
            "",
            "-",
            "-us",
            "us-",
            "@127.0.0.1:47812/",
            "127.0.0.1:47812/evil?",
            "evil.example/",
            "evil.example",
            "us east",
            "us\neast",
            "us#",
            "us\\",
            "us%2f",
            "us_east",
            "ü",
            &long,
        ] {
            assert!(matches!(checked(name), Err(NetError::Region(_))), "{name:?}");
        }
    }
}
