//! What a worker is told, and what it does about it.

use super::Worker;
use super::ports::PortId;
use crate::client::Insister;
use crate::config::Config;
use crate::net::news::News;
use crate::net::orders::Order;
use crate::net::settings::settings;
use std::sync::Arc;
use std::time::Instant;

impl Worker {
    /// Does what it was told since it last looked.
    pub(super) fn read_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Serve(arrival) => self.adopt(*arrival),
                Order::NoMore => self.is_closed = true,
                Order::Drain => self.drain(Instant::now() + self.config.drain_timeout),
                Order::CutOff => self.drain(Instant::now()),
                Order::News(news) => self.hears(news),
                Order::Opened(opened) => self.opened(*opened),
                Order::Move(moving) => self.move_in(*moving),
                // Who has asked may have gone.
                Order::Answer(asked) => drop(asked.send(())),
                Order::Count(asked) => drop(asked.send(self.server_counts())),
                Order::Hastened(id) => self.hub.hastened(id),
                Order::Survey(survey) => self.survey(survey),
                Order::End(ending) => self.end_by_order(ending),
                Order::Halt(halting) => self.halt(halting),
                Order::Configure(config) => self.configure(config),
                Order::Reconnect(database) => self.reconnect(database.as_deref()),
            }
        }
    }

    /// Has everything done as this configuration says, from now on. What has begun already keeps to
    /// what was said then, but for who waits, and for how old server connections become.
    fn configure(&mut self, config: Arc<Config>) {
        self.hub.configure(&settings(&config));
        self.looks_at = (!config.time_limits.is_none()).then(Instant::now);
        let is_other = self.config.server_lifetime != config.server_lifetime;
        self.config = config;
        if is_other {
            self.ages_otherwise();
        }
        self.sweep();
    }

    /// Has a client go on whose query the server was told once more to cancel.
    fn relent(&mut self, insister: &Insister) {
        let Some(id) = self.hub.relent(insister) else {
            return;
        };
        let port = PortId::Client(id);
        self.guarded(port, |worker, _| worker.offer_pending(id));
        self.make_ready(port);
        self.make_dirty(port);
    }

    fn hears(&mut self, news: News) {
        match news {
            News::Sweep => self.sweep(),
            // Who has asked may have gone.
            News::Answer(asked) => drop(asked.send(())),
            News::Insists(insister, asked) => {
                if asked.send(self.hub.insist(&insister)).is_err() {
                    self.relent(&insister);
                }
            }
            News::Relents(insister) => self.relent(&insister),
            News::Delivered => {
                for id in std::mem::take(&mut self.held) {
                    self.make_dirty(PortId::Client(id));
                }
                self.cancel_waits();
            }
            News::Close(id) => self.close_parked(id),
            News::Yield(pool) => self.yield_homes(pool),
            News::Granted(id, ticket, grant) => self.granted(id, ticket, grant),
            News::Return(id) => self.returned_berth(id),
            News::Needed(id) => self.makes_way(id),
        }
    }
}
