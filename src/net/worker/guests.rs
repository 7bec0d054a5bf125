//! What the hub wants done about guests and hosts.

use super::Worker;
use super::ports::PortId;
use crate::ids::{ClientId, UpstreamId};
use crate::net::hasten::hasten_at_last;
use crate::net::orders::Order;
use std::sync::Arc;

impl Worker {
    /// A client may go on that has waited for a connection: what it has sent meanwhile is taken.
    pub(super) fn returned(&mut self, id: ClientId) {
        self.guarded(PortId::Client(id), |worker, _| worker.offer_pending(id));
        let Some(client) = self.clients.get(id.0) else {
            return;
        };
        let link = client.link;
        self.make_dirty(PortId::Client(id));
        if self
            .hub
            .upstream_out(link)
            .is_some_and(|out| !out.is_empty())
        {
            self.make_dirty(PortId::Upstream(link));
        }
    }

    /// Has the server cancel what it does on a connection. If it cannot be told, that ends by
    /// itself. As long as it may have been told and not have listened, nothing else runs there.
    pub(super) fn hasten(&self, id: UpstreamId) {
        let holder = self.upstreams.get(id.0).map(|server| server.holder);
        let client = holder.and_then(|holder| self.clients.get(holder.0));
        let key = client.and_then(|client| client.registration.as_ref()?.server_key());
        let environment = Arc::clone(&self.environment);
        let mailbox = self.mailbox.clone();
        self.runtime.spawn(async move {
            if let Some((pid, secret, endpoint)) = key {
                hasten_at_last(pid, &secret, &endpoint, &environment).await;
            }
            mailbox.put(Order::Hastened(id));
        });
    }
}
