//! A session that may be begun again.

use super::endpoint::Endpoint;
use super::ways::Way;
use crate::auth::Credential;
use crate::statement::context::Origin;
use crate::wire::canonical::canonical;
use std::sync::Arc;

/// A session as it has begun once, to be begun again.
#[derive(Debug, Clone)]
pub(super) struct Session {
    /// Its startup packet, and the database, as the server is to see them.
    pub(super) startup: Vec<u8>,
    pub(super) database: Vec<u8>,
    /// What the server can be shown.
    pub(super) credential: Option<Arc<Credential>>,
    pub(super) way: Arc<Way>,
    /// Where it was.
    pub(super) endpoint: Arc<Endpoint>,
}

impl Session {
    /// Which connections a login like this one may have.
    pub(super) fn identity(&self) -> Vec<u8> {
        Origin::identity_of(self.endpoint.number, &canonical(&self.startup))
    }
}
