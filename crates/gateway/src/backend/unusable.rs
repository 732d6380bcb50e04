//! Servers whose settings cannot be used. Every call gets the reason.

use super::{Backend, BoxFuture, Channel};
use crate::error::{GatewayError, GatewayErrorKind};

/// A server that cannot be started until its settings change.
#[derive(Debug, Clone)]
pub struct Unusable {
    /// Why.
    pub fault: String,
}

impl Backend for Unusable {
    fn open(&self) -> BoxFuture<Result<Channel, GatewayError>> {
        let error = GatewayError::new(GatewayErrorKind::Unavailable, self.fault.clone());
        Box::pin(std::future::ready(Err(error)))
    }

    fn fault(&self) -> Option<&str> {
        Some(&self.fault)
    }
}
