//! Broadcast events on their way out: the payload of each is serialised once. [`crate::fan_out`]
//! gives them to the connections.

mod encoded;
mod growing_text;

pub(crate) use encoded::OfRun;
pub use encoded::{EncodedEvent, GatewayEvent};
