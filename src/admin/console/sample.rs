//! Facts that tests show tables of.

use super::facts::{Counted, Facts, Peer, PeerState, SettingFacts, Totals};
use crate::metrics::Passed;
use crate::reason::{Reason, Stay};
use crate::sql::scan::Scan;
use crate::sql::{Dialect, ScanLimits, eligible};
use crate::statement::routes::Pair;
use crate::statement::shapes::{ShapeFacts, ShapeStage, Shapes};

fn peer(id: u64, standing: PeerState, user: &str, database: &str) -> Peer {
    Peer {
        id,
        standing,
        user: user.to_owned(),
        database: database.to_owned(),
        application: "app".to_owned(),
        replicates: false,
        peer: "10.0.0.1:4000".parse().ok(),
        local: "10.0.0.2:6432".parse().ok(),
        since: 1_700_000_000,
        heard: 1_700_000_060,
        tls: Some("TLS".to_owned()),
        name: "0.1".to_owned(),
        link: Some("0.2".to_owned()),
        process: Some(77),
        closes: false,
        statements: 4,
        statement_bytes: 4096,
        waits_for: "nothing",
        waiting: 0,
        totals: Totals::default(),
    }
}

/// The facts of a shape that was met, as the table of shapes tells them.
pub(in crate::admin) fn met(text: &str) -> ShapeFacts {
    let shapes = Shapes::new(16, 16, 7);
    let mut scan = Scan::new(ScanLimits::default(), 7);
    let dialect = Dialect { server_major: 17 };
    scan.run(text.as_bytes(), dialect).unwrap();
    let recipe = shapes.recipe(text.as_bytes(), &scan).unwrap();
    let _ = recipe.judgement(&scan, || eligible::examine(text, &scan, dialect));
    shapes.overview().remove(0)
}

/// So many clients, their queries, those converted, and bytes.
const fn counted(clients: u64, queries: u64, converted: u64, received: u64, sent: u64) -> Totals {
    Totals {
        clients,
        queries,
        converted,
        executes: 0,
        transactions: queries / 2,
        micros: queries * 30,
        xact_micros: queries * 40,
        waited: 70,
        parses: 5,
        prepared: 6,
        binds: 9,
        received,
        sent,
    }
}

/// Two clients, three server connections and somebody at the console.
pub(in crate::admin) fn facts() -> Facts {
    let all = counted(3, 100, 80, 5000, 9000);
    let by_name = |totals| Counted::from([("db".to_owned(), totals)]);
    let client = Peer {
        totals: all,
        ..peer(12, PeerState::Active, "me", "db")
    };
    let unix = |standing| Peer {
        peer: None,
        local: None,
        ..peer(0, standing, "me", "db")
    };
    let mut snapshot = crate::admin::sample();
    snapshot.version = "1.2.3";
    Facts {
        snapshot,
        leads: std::collections::BTreeMap::new(),
        fallback: Some(super::facts::Lead {
            hosts: "10.0.0.9".to_owned(),
            port: 5432,
            dbname: None,
            user: None,
            pool: None,
            gives_back: false,
            least: 0,
            reserve: 0,
            most: 0,
            clients: 0,
        }),
        pool_size: 20,
        most_of_user: [0, 0],
        limits: std::collections::BTreeMap::new(),
        server_lifetime: 3600,
        max_clients: 100,
        instances: vec![
            ("10.0.0.8".to_owned(), Some(6432)),
            ("/run/b".to_owned(), None),
        ],
        warnings: vec!["This is a warning."],
        settings: vec![SettingFacts {
            key: "mode",
            value: "convert".to_owned(),
            default: Some("convert"),
            is_changeable: false,
        }],
        clients: vec![client, peer(13, PeerState::LoggingIn, "me", "db")],
        servers: vec![
            peer(0, PeerState::Active, "me", "db"),
            unix(PeerState::LoggingIn),
            unix(PeerState::Idle),
        ],
        guests: vec![peer(9, PeerState::Active, "root", super::NAMES[0])],
        counted: by_name(all),
        logins: Vec::new(),
        period: (
            by_name(counted(3, 40, 20, 2000, 3000)),
            by_name(counted(3, 100, 80, 5000, 9000)),
            60,
        ),
        shapes: shapes(),
        halted: std::sync::Arc::default(),
        switches: std::sync::Arc::default(),
        before: vec![77],
        passed: passed(),
        shape_bytes: 1234,
    }
}

fn shapes() -> Vec<ShapeFacts> {
    let shape = |id, text, stage| {
        let mut facts = met(text);
        (facts.id, facts.stage) = (id, stage);
        facts
    };
    let mut prepared = shape(7, "SELECT a FROM t WHERE id = 5", ShapeStage::Prepared);
    prepared.executions = 80;
    (prepared.at_home, prepared.stays) = (1, Some(Stay::NoRead));
    prepared.saved = Some(80 * 15);
    prepared.times = Some(Pair {
        prepared: 30,
        original: 45,
    });
    let seen = "SELECT b FROM t WHERE bits = B'1010' AND id = 5";
    vec![prepared, shape(9, seen, ShapeStage::Seen)]
}

fn passed() -> Vec<Passed> {
    vec![
        Passed {
            reason: Reason::Threshold,
            shape: "SELECT b FROM t WHERE bits = ? AND id = ?;".to_owned(),
            count: 5,
        },
        Passed {
            reason: Reason::NotPreparable,
            shape: "BEGIN".to_owned(),
            count: 2,
        },
    ]
}
