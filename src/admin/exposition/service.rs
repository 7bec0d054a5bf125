//! The figures about the service: its configuration, its certificate, what operators hold back, and
//! the server connections that there are.

use super::{Page, counter, gauge};
use crate::admin::{ServerCounts, Snapshot};

impl Page {
    pub(super) fn service(&mut self, snapshot: &Snapshot) {
        let reloads = snapshot.reloads;
        let help = "Times that the configuration was read again, by what came of it.";
        self.each(
            counter("pgautoprep_config_reloads", help),
            "outcome",
            [("succeeded", reloads.succeeded), ("failed", reloads.failed)],
        );
        let help = "0 if the configuration could not be used when it was last read again.";
        self.one(
            gauge("pgautoprep_config_last_reload_successful", help),
            u8::from(!reloads.is_refused),
        );
        let help = "When the configuration in force was read, since 1970.";
        self.one(
            gauge(
                "pgautoprep_config_last_reload_success_timestamp_seconds",
                help,
            ),
            reloads.read,
        );
        if let Some(ends) = snapshot.certificate_ends {
            let help = "When the certificate ends that clients are shown, since 1970.";
            let family = gauge("pgautoprep_certificate_expiry_timestamp_seconds", help);
            self.one(family, ends);
        }
        self.halts(snapshot);
        let help = "Clients that wait for a server connection of their pool.";
        self.one(gauge("pgautoprep_waiting_clients", help), snapshot.queued);
        if let Some(servers) = snapshot.servers {
            self.servers(servers);
        }
    }

    fn halts(&mut self, snapshot: &Snapshot) {
        let halts = snapshot.halts;
        let help = "1 while all databases are paused.";
        self.one(gauge("pgautoprep_paused", help), u8::from(halts.is_all));
        let help = "Databases that are paused or disabled by their names.";
        self.each(
            gauge("pgautoprep_halted_databases", help),
            "halt",
            [("paused", halts.paused), ("disabled", halts.disabled)],
        );
    }

    fn servers(&mut self, servers: ServerCounts) {
        let help = "Server connections, by the state that the console tells of them.";
        self.each(
            gauge("pgautoprep_server_connections", help),
            "state",
            [
                ("active", servers.active),
                ("idle", servers.idle),
                ("login", servers.login),
                ("tested", servers.tested),
            ],
        );
    }
}
