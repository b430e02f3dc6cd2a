//! `sessions.*` (spec `gateway-protocol.md` §6.2).

use openclaw_protocol::ErrorShape;
use openclaw_protocol::params::sessions::*;

use crate::request::{Failure, RequestContext};

macro_rules! pending {
    ($name:ident, $params:ty, $result:ty) => {
        pub(super) async fn $name(_ctx: RequestContext, _params: $params) -> Result<$result, Failure> {
            Err(ErrorShape::not_implemented("sessions").into())
        }
    };
}
pending!(list, SessionsListParams, SessionsListResult);
pending!(preview, SessionsPreviewParams, SessionsPreviewResult);
pending!(resolve, SessionsResolveParams, SessionsResolveResult);
pending!(patch, SessionsPatchParams, SessionsPatchResult);
pending!(reset, SessionsResetParams, SessionsResetResult);
pending!(delete, SessionsDeleteParams, SessionsDeleteResult);
