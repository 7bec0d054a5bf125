//! The figures about reads that run elsewhere, about transactions that only read, and about
//! sessions whose server connections serve nobody else.

use super::{Page, counter};
use crate::metrics::{Counter, Summary};
use crate::reason::{Homing, Stay, Taint};

impl Page {
    pub(super) fn reads(&mut self, summary: &Summary) {
        use Counter::{ReadsEscaped, ReadsOpen, ReadsShared, ReadsTravel};
        let help = "Reads that may run on the server connections of others: statements of which \
                    that is proven, and queries only observed that their text does not keep.";
        self.each(
            counter("pgautoprep_travelling_reads", help),
            "known",
            [
                ("proven", summary.count(ReadsTravel)),
                ("by_text", summary.count(ReadsOpen)),
            ],
        );
        let help = "Reads that were sent to the server connection of another client, by what came \
                    of it.";
        self.each(
            counter("pgautoprep_shared_reads", help),
            "outcome",
            [
                ("answered", summary.count(ReadsShared)),
                ("escaped", summary.count(ReadsEscaped)),
            ],
        );
        let help = "Executions on the own server connection of reads that may run on others, by \
                    why; those that came back from another are among them.";
        let homings = Homing::ALL.map(|homing| (homing.label(), summary.homings(homing)));
        self.each(
            counter("pgautoprep_homebound_reads", help),
            "reason",
            homings,
        );
        let help = "Reads that stay on the server connection of their own session, by why.";
        let stays = Stay::ALL.map(|stay| (stay.label(), summary.stays(stay)));
        self.each(counter("pgautoprep_reads_at_home", help), "reason", stays);
        self.loose(summary);
        let help = "Sessions that came to hold what nothing takes away, so that their server \
                    connections serve no other client, by what.";
        let taints = Taint::ALL.map(|taint| (taint.label(), summary.taints(taint)));
        self.each(
            counter("pgautoprep_tainted_sessions", help),
            "reason",
            taints,
        );
    }

    fn loose(&mut self, summary: &Summary) {
        use Counter::{
            OpenedAtHome, OpenedForMany, OpenedForMore, OpenedForTime, OpenedLate, ReadsRepeated,
            RepeatsFailed, TransactionsSpared,
        };
        let count = |counter| summary.count(counter);
        let help = "Transactions whose reads ran without a lock, by what became of them: the \
                    server has not heard of them (spared), or why it has.";
        self.each(
            counter("pgautoprep_loose_transactions", help),
            "outcome",
            [
                ("spared", count(TransactionsSpared)),
                ("more", count(OpenedForMore)),
                ("time", count(OpenedForTime)),
                ("many", count(OpenedForMany)),
                ("late", count(OpenedLate)),
                ("home", count(OpenedAtHome)),
            ],
        );
        let help = "Reads that were planned again for the locks of their transaction.";
        self.one(
            counter("pgautoprep_repeated_reads", help),
            count(ReadsRepeated),
        );
        let help = "Transactions in which that has failed.";
        self.one(
            counter("pgautoprep_failed_repeats", help),
            count(RepeatsFailed),
        );
    }
}
