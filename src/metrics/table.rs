//! The counters as a table for people.

use std::fmt;

use super::{Counter, Summary};
use crate::reason::{Homing, LoginRefused, Reason, Stay, Taint};
use crate::sql::tag::Command;

/// A summary, and beside each count what it has grown by since an earlier one.
#[derive(Debug, Clone, Copy)]
pub struct Growth<'s> {
    /// The later one.
    pub now: &'s Summary,
    /// The earlier one, of the same metrics.
    pub before: &'s Summary,
}

impl fmt::Display for Growth<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Table {
            now: self.now,
            before: Some(self.before),
        }
        .write(f)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Table {
            now: self,
            before: None,
        }
        .write(f)
    }
}

/// What is written.
#[derive(Debug, Clone, Copy)]
struct Table<'s> {
    now: &'s Summary,
    before: Option<&'s Summary>,
}

/// Reads one number out of a summary.
type Read<'r> = &'r dyn Fn(&Summary) -> u64;

impl Table<'_> {
    fn write(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queries(f)?;
        self.work(f)?;
        writeln!(f, "learned again after")?;
        let mut tags: Vec<_> = self.now.outdated.into_iter().enumerate().collect();
        tags.retain(|(_, count)| *count > 0);
        tags.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (index, _) in tags {
            self.row(f, Command::label(index), &|it| it.outdated[index])?;
        }
        self.peers(f)
    }

    fn queries(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Counter::*;
        let queries = self.now.count(Queries);
        let mut share = |indent: usize, label: &str, count: Read<'_>| {
            let percent = 100.0 * count(self.now) as f64 / queries.max(1) as f64;
            let label = format!("{:indent$}{label}", "");
            write!(f, "{label:<28}{:>16}{percent:>8.1} %", count(self.now))?;
            self.end(f, 0, count)
        };
        share(0, "queries", &|it| it.count(Queries))?;
        share(2, "converted", &|it| it.count(Converted))?;
        share(4, "warm", &|it| it.count(Warm))?;
        share(4, "cold", &|it| it.count(Cold))?;
        share(4, "replayed", &|it| it.count(Replayed))?;
        share(2, "passed through", &Summary::passed_through)?;
        let mut reasons = Reason::ALL.map(|reason| (reason, self.now.passed(reason)));
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (reason, _) in reasons.into_iter().filter(|(_, count)| *count > 0) {
            share(4, reason.label(), &|it| it.passed(reason))?;
        }
        if self.now.count(Executes) == 0 {
            return Ok(());
        }
        writeln!(f, "extended protocol")?;
        self.group(f, &[("executed", Executes)])
    }

    /// What the proxy does for them.
    fn work(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Counter::*;
        writeln!(f, "statements")?;
        let statements = [
            ("prepared", StatementsPrepared),
            ("renewed", StatementsRenewed),
            ("closed", StatementsClosed),
            ("evicted", StatementsEvicted),
            ("carrying BEGIN", BeginsCarried),
            ("kept over DISCARD ALL", DiscardsSpared),
        ];
        self.group(f, &statements)?;
        self.row(f, "server memory, bytes", &Summary::statement_memory)?;
        writeln!(f, "shapes")?;
        let shapes = [
            ("oracle asked", OracleQuestions),
            ("accepted", OracleAccepted),
            ("declined", OracleDeclined),
            ("dropped unpaid", LessonsUnpaid),
            ("arguments demoted", Demotions),
            ("audits passed", AuditsPassed),
            ("audits failed", AuditsFailed),
            ("routes compared", Trials),
            ("microseconds saved", MicrosSaved),
            ("microseconds lost", MicrosLost),
            ("left for slowness", RoutesLeft),
            ("taken again", RoutesTaken),
        ];
        self.group(f, &shapes)?;
        writeln!(f, "questions")?;
        self.group(
            f,
            &[("answered", Questions), ("milliseconds", QuestionsMillis)],
        )?;
        self.reads(f)
    }

    /// What was found out about reads that might run elsewhere, if anybody has asked.
    fn reads(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.proven(f)?;
        self.loose(f)
    }

    /// What has become of transactions that only read, if there are any of which no server knows.
    fn loose(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Counter::*;
        let counts = [
            ("unknown to the server", TransactionsSpared),
            ("opened for more", OpenedForMore),
            ("opened for the time", OpenedForTime),
            ("opened for many reads", OpenedForMany),
            ("opened late", OpenedLate),
            ("opened at home", OpenedAtHome),
            ("reads repeated", ReadsRepeated),
            ("failed to repeat", RepeatsFailed),
        ];
        if counts.iter().all(|(_, it)| self.now.count(*it) == 0) {
            return Ok(());
        }
        writeln!(f, "transactions that read")?;
        self.group(f, &counts)
    }

    fn proven(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let home = |it: &Summary| Stay::ALL.iter().map(|stay| it.stays(*stay)).sum();
        let counts = [Counter::ReadsTravel, Counter::ReadsOpen];
        if home(self.now) + counts.iter().map(|it| self.now.count(*it)).sum::<u64>() == 0 {
            return Ok(());
        }
        writeln!(f, "reads")?;
        let [travel, open] = counts;
        self.row(f, "may travel", &|it| it.count(travel))?;
        self.row(f, "might, by their text", &|it| it.count(open))?;
        self.executed(f)?;
        self.row(f, "stay at home", &home)?;
        let mut stays = Stay::ALL;
        stays.sort_by_key(|stay| std::cmp::Reverse(self.now.stays(*stay)));
        for stay in stays {
            if self.now.stays(stay) > 0 {
                self.row(f, &format!("  {}", stay.label()), &|it| it.stays(stay))?;
            }
        }
        Ok(())
    }

    /// Where reads ran that may run elsewhere.
    fn executed(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = |it: &Summary, is_escape| {
            let of = Homing::ALL.iter().filter(|of| of.is_escape() == is_escape);
            of.map(|homing| it.homings(*homing)).sum::<u64>()
        };
        let shared = self.now.count(Counter::ReadsShared);
        if shared + sum(self.now, false) + sum(self.now, true) == 0 {
            return Ok(());
        }
        self.row(f, "run by others", &|it| it.count(Counter::ReadsShared))?;
        for (label, is_escape) in [("came home again", true), ("run at home", false)] {
            self.row(f, label, &|it| sum(it, is_escape))?;
            let mut homings = Homing::ALL;
            homings.sort_by_key(|homing| std::cmp::Reverse(self.now.homings(*homing)));
            let of = homings.iter().filter(|it| it.is_escape() == is_escape);
            for homing in of.filter(|homing| self.now.homings(**homing) > 0) {
                let label = format!("  {}", homing.label());
                self.row(f, &label, &|it| it.homings(*homing))?;
            }
        }
        Ok(())
    }

    /// Who it does it for.
    fn peers(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Counter::*;
        writeln!(f, "connections")?;
        self.row(f, "open", &Summary::connections_open)?;
        let connections = [
            ("opened", ConnectionsOpened),
            ("closed", ConnectionsClosed),
            ("refused", ConnectionsRefused),
            ("TLS handshakes", TlsHandshakes),
            ("TLS failures", TlsFailures),
            ("TLS refused by server", TlsRefused),
            ("kept for others", Parked),
            ("given to others", Woken),
            ("let in without a home", Homeless),
            ("homes left", HomesLeft),
            ("homes found again", HomesFound),
            ("waits timed out", WaitTimeouts),
            ("cancel requests", Cancels),
            ("bytes from clients", BytesFromClients),
            ("bytes from upstream", BytesFromUpstream),
        ];
        self.group(f, &connections)?;
        self.refusals(f)?;
        self.taints(f)?;
        writeln!(f, "errors by fault")?;
        let errors = [
            ("client", ErrorsClient),
            ("upstream", ErrorsUpstream),
            ("operator", ErrorsOperator),
            ("proxy", ErrorsProxy),
        ];
        self.group(f, &errors)
    }

    /// Why logins were refused, if any were.
    fn refusals(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |it: &Summary| LoginRefused::ALL.iter().map(|why| it.refusals(*why)).sum();
        if all(self.now) == 0 {
            return Ok(());
        }
        self.row(f, "logins refused", &all)?;
        for why in LoginRefused::ALL {
            if self.now.refusals(why) > 0 {
                self.row(f, &format!("  {}", why.label()), &|it| it.refusals(why))?;
            }
        }
        Ok(())
    }

    /// By what sessions were tainted, if any were.
    fn taints(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = |it: &Summary| Taint::ALL.iter().map(|taint| it.taints(*taint)).sum();
        if all(self.now) == 0 {
            return Ok(());
        }
        self.row(f, "tainted", &all)?;
        for taint in Taint::ALL.into_iter().filter(|it| self.now.taints(*it) > 0) {
            self.row(f, &format!("  {}", taint.label()), &|it| it.taints(taint))?;
        }
        Ok(())
    }

    fn group(self, f: &mut fmt::Formatter<'_>, rows: &[(&str, Counter)]) -> fmt::Result {
        rows.iter()
            .try_for_each(|(label, counter)| self.row(f, label, &|it| it.count(*counter)))
    }

    fn row(self, f: &mut fmt::Formatter<'_>, label: &str, count: Read<'_>) -> fmt::Result {
        write!(f, "  {label:<26}{:>16}", count(self.now))?;
        self.end(f, 10, count)
    }

    /// Ends a row with its growth, behind so many blanks. What is open, or taken, may shrink.
    fn end(self, f: &mut fmt::Formatter<'_>, blanks: usize, count: Read<'_>) -> fmt::Result {
        let Some(before) = self.before else {
            return writeln!(f);
        };
        let grown = i128::from(count(self.now)) - i128::from(count(before));
        writeln!(f, "{:blanks$}{grown:>+16}", "")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Counters;
    use crate::metrics::Metrics;

    fn used() -> Metrics {
        let metrics = Metrics::new(1);
        let worker = metrics.worker(0);
        worker.add(Counter::Queries, 8);
        worker.add(Counter::Converted, 5);
        worker.add(Counter::Warm, 5);
        worker.passed(Reason::Threshold);
        worker.passed(Reason::NotPreparable);
        worker.passed(Reason::NotPreparable);
        worker.add(Counter::ErrorsProxy, u64::MAX / 1_000_000);
        worker.outdated(Command::UNSEEN);
        (0..2).for_each(|_| worker.outdated(Command::of(b"CREATE INDEX")));
        metrics
    }

    #[test]
    fn the_table_is_aligned_and_shows_only_the_reasons_that_occurred() {
        let metrics = used();
        let expected = "\
queries                                    8   100.0 %
  converted                                5    62.5 %
    warm                                   5    62.5 %
    cold                                   0     0.0 %
    replayed                               0     0.0 %
  passed through                           3    37.5 %
    not_preparable                         2    25.0 %
    threshold                              1    12.5 %
statements
  prepared                                 0
  renewed                                  0
  closed                                   0
  evicted                                  0
  carrying BEGIN                           0
  kept over DISCARD ALL                    0
  server memory, bytes                     0
shapes
  oracle asked                             0
  accepted                                 0
  declined                                 0
  dropped unpaid                           0
  arguments demoted                        0
  audits passed                            0
  audits failed                            0
  routes compared                          0
  microseconds saved                       0
  microseconds lost                        0
  left for slowness                        0
  taken again                              0
questions
  answered                                 0
  milliseconds                             0
learned again after
  CREATE INDEX                             2
  unseen                                   1
connections
  open                                     0
  opened                                   0
  closed                                   0
  refused                                  0
  TLS handshakes                           0
  TLS failures                             0
  TLS refused by server                    0
  kept for others                          0
  given to others                          0
  let in without a home                    0
  homes left                               0
  homes found again                        0
  waits timed out                          0
  cancel requests                          0
  bytes from clients                       0
  bytes from upstream                      0
errors by fault
  client                                   0
  upstream                                 0
  operator                                 0
  proxy                       18446744073709
";
        assert_eq!(metrics.summary().to_string(), expected);
    }

    #[test]
    fn reads_are_shown_once_somebody_has_asked_about_them() {
        let metrics = used();
        let worker = metrics.worker(0);
        worker.add(Counter::ReadsTravel, 3);
        worker.stays(Stay::Settings);
        worker.stays(Stay::Restricted);
        worker.stays(Stay::Restricted);
        let shown = metrics.summary().to_string();
        let expected = "\
reads
  may travel                               3
  might, by their text                     0
  stay at home                             3
    restricted                             2
    settings                               1
learned";
        assert!(shown.contains(expected), "{shown}");
    }

    #[test]
    fn it_is_told_why_logins_were_refused() {
        let metrics = used();
        metrics.worker(0).refused(LoginRefused::Password);
        metrics.acceptor().refused(LoginRefused::ServerFull);
        let shown = metrics.summary().to_string();
        let expected = "\
  logins refused                           2
    password                               1
    server_full                            1
errors";
        assert!(shown.contains(expected), "{shown}");
    }

    /// What happens between two summaries.
    fn goes_on(worker: &Counters) {
        worker.add(Counter::Queries, 12);
        worker.add(Counter::Converted, 12);
        worker.add(Counter::Warm, 11);
        worker.add(Counter::Cold, 1);
        worker.add(Counter::MemoryFreed, 8_000);
        worker.add(Counter::ConnectionsOpened, 1);
        worker.add(Counter::ConnectionsClosed, 4);
        worker.outdated(Command::of(b"DROP TABLE"));
    }

    #[test]
    fn beside_each_count_stands_what_it_has_grown_by() {
        let metrics = used();
        let worker = metrics.worker(0);
        worker.add(Counter::MemoryTaken, 28_000);
        worker.add(Counter::ConnectionsOpened, 3);
        let before = metrics.summary();
        goes_on(worker);
        let (now, before) = (&metrics.summary(), &before);
        let growth = Growth { now, before };
        let expected = "\
queries                                   20   100.0 %             +12
  converted                               17    85.0 %             +12
    warm                                  16    80.0 %             +11
    cold                                   1     5.0 %              +1
    replayed                               0     0.0 %              +0
  passed through                           3    15.0 %              +0
    not_preparable                         2    10.0 %              +0
    threshold                              1     5.0 %              +0
statements
  prepared                                 0                        +0
  renewed                                  0                        +0
  closed                                   0                        +0
  evicted                                  0                        +0
  carrying BEGIN                           0                        +0
  kept over DISCARD ALL                    0                        +0
  server memory, bytes                 20000                     -8000
shapes
  oracle asked                             0                        +0
  accepted                                 0                        +0
  declined                                 0                        +0
  dropped unpaid                           0                        +0
  arguments demoted                        0                        +0
  audits passed                            0                        +0
  audits failed                            0                        +0
  routes compared                          0                        +0
  microseconds saved                       0                        +0
  microseconds lost                        0                        +0
  left for slowness                        0                        +0
  taken again                              0                        +0
questions
  answered                                 0                        +0
  milliseconds                             0                        +0
learned again after
  CREATE INDEX                             2                        +0
  DROP TABLE                               1                        +1
  unseen                                   1                        +0
connections
  open                                     0                        -3
  opened                                   4                        +1
  closed                                   4                        +4
  refused                                  0                        +0
  TLS handshakes                           0                        +0
  TLS failures                             0                        +0
  TLS refused by server                    0                        +0
  kept for others                          0                        +0
  given to others                          0                        +0
  let in without a home                    0                        +0
  homes left                               0                        +0
  homes found again                        0                        +0
  waits timed out                          0                        +0
  cancel requests                          0                        +0
  bytes from clients                       0                        +0
  bytes from upstream                      0                        +0
errors by fault
  client                                   0                        +0
  upstream                                 0                        +0
  operator                                 0                        +0
  proxy                       18446744073709                        +0
";
        assert_eq!(growth.to_string(), expected);
    }
}
