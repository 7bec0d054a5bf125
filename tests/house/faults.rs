//! What goes wrong in a house, who leaves it, and what must be true in it all the same.

use crate::client::Request;
use crate::house::{BOUND, House, MORE, READ, Room};
use pgautoprep::client::Turn;
use pgautoprep::ids::{ClientId, UpstreamId};

impl House {
    /// What must be true after every step.
    pub(crate) fn check(&mut self, room: usize) -> Result<(), String> {
        let Room { client, turn, .. } = &mut self.rooms[room];
        let known = self
            .hub
            .client(client.id)
            .ok_or("the client is not known")?;
        if known.link != client.link || self.hub.holder(client.link) != Some(client.id) {
            return Err("client and connection do not name each other".to_owned());
        }
        let now = match known.turn {
            Turn::Reopening(_) => "reopening",
            Turn::Cancelled(_) => "cancelled",
            _ => "",
        };
        if *turn != now {
            self.seen.reopened += usize::from(now == "reopening");
            self.seen.cancelled_here += usize::from(now == "cancelled");
            *turn = now;
            if now == "reopening" && self.dice.chance(700) {
                self.rooms[room].server.slow = Some(self.dice.below(2));
                self.cancel(room);
                return Ok(());
            }
        }
        let down = self.hub.client_out(client.id).map_or(0, |out| out.len());
        let up = self
            .hub
            .upstream_out(client.link)
            .map_or(0, |out| out.len());
        let most = BOUND + READ + MORE;
        match down > most || up > most || client.pending.len() > most {
            true => Err(format!("{down} bytes down, {up} bytes up")),
            false => Ok(()),
        }
    }

    pub(crate) fn fault(&mut self, room: usize) -> Result<(), String> {
        match self.dice.below(100) {
            0..25 => {
                let client = &mut self.rooms[room].client;
                client.is_stalled = !client.is_stalled;
            }
            25..40 => {
                self.note(room, "finishes");
                let client = &mut self.rooms[room].client;
                client.has_finished = true;
                client.is_stalled = false;
                self.hub.client_finishes(client.id);
                self.seen.finished += 1;
            }
            40..55 => {
                self.note(room, "dies");
                self.rooms[room].server.die(&mut self.dice);
            }
            55..65 => {
                self.note(room, "leaves");
                return self.leave(room);
            }
            _ => self.rooms[room].server.model.catalog += 1,
        }
        Ok(())
    }

    pub(crate) fn cancel(&mut self, room: usize) {
        let sent = self.step;
        let client = &mut self.rooms[room].client;
        let known = self.hub.client(client.id);
        if known.is_some_and(|known| matches!(known.turn, Turn::Settling(_))) {
            // Whoever has just come home cannot be cancelled there yet.
            return;
        }
        if client.is_logged_in && client.requests.iter().all(|r| r.delivered.is_some()) {
            client.key.cancelled.request();
            client.requests.push(Request {
                sent,
                delivered: None,
                is_used: false,
            });
            self.note(room, "asks to cancel");
        }
    }

    pub(crate) fn deliver(&mut self, room: usize) -> Result<(), String> {
        let Room { client, server, .. } = &mut self.rooms[room];
        let mut open = client.requests.iter_mut().filter(|r| r.delivered.is_none());
        let Some(request) = open.next() else {
            return Ok(());
        };
        request.delivered = Some(self.step);
        let (sent, hit) = (request.sent, server.cancel(&mut self.dice));
        client.key.cancelled.deliver();
        if let Some(known) = self.hub.client(client.id) {
            let waits = matches!(known.turn, Turn::Learning) && !known.query.is_empty();
            client.is_doomed |= hit && waits && !client.has_finished && client.asked.len() == 1;
        }
        self.note(room, &format!("the request of step {sent} is there: {hit}"));
        self.go_on(room)
    }

    /// The client is dropped, and another comes.
    pub(crate) fn leave(&mut self, room: usize) -> Result<(), String> {
        let Room { client, server, .. } = &self.rooms[room];
        client.has_run(&server.model)?;
        self.seen.cancelled += client.cancelled;
        self.seen.translated += client.translated;
        self.hub.remove(client.id);
        self.rooms[room] = self.arrival();
        Ok(())
    }

    /// All leave: nothing is left in the hub.
    pub(crate) fn close(&mut self) -> Result<(), String> {
        for Room { client, server, .. } in &self.rooms {
            client.has_run(&server.model)?;
            self.seen.cancelled += client.cancelled;
            self.seen.translated += client.translated;
            self.hub.remove(client.id);
        }
        for (link, _) in std::mem::take(&mut self.idle) {
            self.hub.discard(link);
        }
        // What was to be done about them is passed over.
        while self.hub.poll().is_some() {}
        let gone = |(id, link): &(ClientId, UpstreamId)| {
            self.hub.client(*id).is_none() && self.hub.upstream(*link).is_none()
        };
        let all = self.names.iter().all(gone) && self.hub.next_timeout().is_none();
        all.then_some(())
            .ok_or_else(|| "something is left".to_owned())
    }
}
