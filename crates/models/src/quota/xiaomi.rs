//! Xiaomi MiMo, which has no place to ask: the row says that there is a key and no quota is known.

use super::access::Wants;
use super::{Quota, QuotaProvider};

pub(super) const PROVIDER: QuotaProvider = QuotaProvider {
    id: "xiaomi",
    name: "Xiaomi",
    wants: Wants::Key,
    ask: |_, _| Vec::new(),
    read: |_| Ok(Quota::default()),
};
