//! Peers that send nonsense, stop in the middle, or never come: nobody else notices.

use crate::harness::client::Client;
use crate::harness::frames::{self, complete, frame, query, ready, row, startup, tags};
use crate::harness::login::{Users, login};
use crate::harness::proxy::{Process, Proxy};
use crate::harness::scene::SQL;
use crate::harness::script::{CONTEXT, SELECT, greeting, is_about_names, parsed, plan};
use crate::harness::server;
use crate::harness::upstream::{Peer, Upstream, learned, met};
use pgautoprep::metrics::Counter;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

const ME: [(&str, &str); 2] = [("user", "postgres"), ("database", "postgres")];

/// What nonsense may cost a proxy that has served a query before: mostly its own code, paged in.
const MEMORY_KIB: u64 = 8 * 1024;

/// Sends bytes and reads until the proxy hangs up.
fn send_and_listen(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    // Some are refused while they still talk.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if error.kind() != std::io::ErrorKind::ConnectionReset => {
            panic!(
                "the proxy does not hang up on {}: {error}",
                bytes.escape_ascii()
            )
        }
        _ => answer,
    }
}

/// A small generator of numbers that are always the same: xorshift.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_be_bytes()[3]).collect()
    }
}

#[test]
fn nonsense_before_the_login_is_answered_or_hung_up_on() {
    let proxy = Process::start(&server::address(), &[]);
    let mut other = Client::login(&proxy.address, "postgres");
    other.run("SELECT 1 + 1");
    let before = proxy.peak_kib();
    let mut numbers = Numbers(7);
    let mut nonsense: Vec<Vec<u8>> = vec![
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        b"\0\0\0\0".to_vec(),
        b"\0\0\0\x04".to_vec(),
        b"\0\0\0\x07\0\x03\0".to_vec(),
        b"\0\0\0\x08\0\x03\0\0".to_vec(),
        b"\0\0\0\x09\0\x03\0\0\0".to_vec(),
        b"\x7f\xff\xff\xff\0\x03\0\0".to_vec(),
        b"\xff\xff\xff\xff\0\x03\0\0".to_vec(),
        b"\0\0\x27\x11\0\x03\0\0".to_vec(),
        b"\0\0\0\x0d\0\x03\0\0user\0".to_vec(),
        b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07abcd".to_vec(),
        b"\0\0\0\x08\x04\xd2\x16\x2e".to_vec(),
        b"\0\0\0\x08\x04\xd2\x16\x2f".repeat(9),
        query("SELECT 1"),
    ];
    // Two gigabytes announced, and some of them sent.
    nonsense.push([&b"\x7f\xff\xff\xff\0\x03\0\0"[..], &[b'x'; 1 << 20]].concat());
    nonsense.extend((0..60).map(|count| numbers.bytes(count)));
    for bytes in &nonsense {
        let answer = send_and_listen(&proxy.address, bytes);
        let (answers, rest) = frames::cut(answer.strip_prefix(b"N").unwrap_or(&answer));
        assert!(rest.is_empty(), "{}", answer.escape_ascii());
        for frame in answers {
            assert_eq!(frame.field(b'S').as_deref(), Some("FATAL"), "{frame:?}");
        }
        assert_eq!(other.value("SELECT 1 + 1"), "2");
    }
    let grown = proxy.peak_kib() - before;
    assert!(grown < MEMORY_KIB, "{grown} KiB");
}

#[test]
fn nonsense_after_the_login_ends_one_connection() {
    let proxy = Process::start(&server::address(), &[]);
    let mut other = Client::login(&proxy.address, "postgres");
    other.run("SELECT 1 + 1");
    let before = proxy.peak_kib();
    let mut numbers = Numbers(11);
    let login = startup(&ME);
    let mut nonsense: Vec<Vec<u8>> = vec![
        b"Q\0\0\0\x03".to_vec(),
        b"Q\0\0\0\0".to_vec(),
        b"Q\xff\xff\xff\xff".to_vec(),
        b"Q\x7f\xff\xff\xffSELECT".to_vec(),
        b"Q\x3f\xff\xff\xffSELECT".to_vec(),
        b"P\x3f\xff\xff\xff\0SELECT".to_vec(),
        b"d\x3f\xff\xff\xff".to_vec(),
        b"\0\0\0\0\0\0\0\0".to_vec(),
        [&b"Q\x3f\xff\xff\xff"[..], &[b'x'; 1 << 20]].concat(),
        [&b"Q\x00\x01\x00\x08"[..], &[b'\''; 1 << 10]].concat(),
    ];
    nonsense.extend((0..120).map(|count| numbers.bytes(count)));
    for bytes in &nonsense {
        send_and_listen(&proxy.address, &[&login[..], bytes].concat());
        assert_eq!(other.value("SELECT 1 + 1"), "2");
    }
    let grown = proxy.peak_kib() - before;
    assert!(grown < MEMORY_KIB, "{grown} KiB");
}

#[test]
fn a_client_may_leave_after_any_byte() {
    let proxy = Proxy::start(&server::address());
    let mut other = Client::login(proxy.address(), "postgres");
    let conversation = [
        startup(&ME),
        query("SELECT oid FROM pg_class WHERE relname = 'x'"),
        frames::parse("a", "SELECT $1::int", &[]),
        frames::bind("", "a", &["1"]),
        frames::execute("", 0),
        frames::sync(),
        query("COPY (SELECT 1) TO STDOUT"),
        frame(b'X', b""),
    ]
    .concat();
    for end in 0..conversation.len() {
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        stream.write_all(&conversation[..end]).unwrap();
        // Half of them leave at once, half wait for what is still said to them.
        if end % 2 == 0 {
            send_and_listen(proxy.address(), &conversation[..end]);
        }
        drop(stream);
        if end % 16 == 0 {
            assert_eq!(other.value("SELECT 1 + 1"), "2");
        }
    }
    proxy.await_connections(1);
    assert_eq!(other.value("SELECT 1 + 1"), "2");
}

/// Answers one connection like a server that dies after `budget` bytes.
fn dying_server(upstream: &Upstream, mut budget: usize) {
    let mut peer = upstream.accept();
    let rows = |cells: &[&str]| [row(cells), complete("SELECT 1"), ready(b'I')].concat();
    let answer = rows(&["Ann"]);
    let [custom, generic] = SELECT.plans.map(|drawn| rows(&[&plan(drawn)]));
    let parsed = parsed(SELECT.columns, SELECT.types);
    let context = rows(&CONTEXT);
    let executed = [frame(b'2', b""), frames::description(&["name"]), answer].concat();
    let mut say = |peer: &mut Peer, bytes: &[u8]| {
        let piece = &bytes[..bytes.len().min(budget)];
        peer.send(piece);
        budget -= piece.len();
        budget > 0
    };
    peer.expect(&startup(&[("user", "me"), ("database", "db")]));
    let script: [(&str, Vec<u8>); 5] = [
        ("", greeting()),
        ("Q", context),
        ("PBECPDSPBECPDS", [&parsed[..], &parsed].concat()),
        ("QQQ", [&custom[..], &custom, &generic].concat()),
        ("BDES", executed),
    ];
    for (tags, bytes) in script {
        // What is asked of the catalog first depends on what others have asked.
        loop {
            let frames = peer.take(tags);
            let question = frames
                .first()
                .map(|frame| String::from_utf8_lossy(&frame.body));
            let question = question.unwrap_or_default();
            let asks = |text: &str| tags == "Q" && question.contains(text);
            let answer = if tags == "Q" && is_about_names(&question) {
                [complete("SELECT 0"), ready(b'I')].concat()
            } else if asks("concat_ws('|', (SELECT") {
                rows(&["sign", "", "", "1"])
            } else {
                break;
            };
            if !say(&mut peer, &answer) {
                return;
            }
        }
        if !say(&mut peer, &bytes) {
            return;
        }
    }
}

#[test]
fn a_server_may_die_after_any_byte() {
    let upstream = Upstream::listen();
    let proxy = Proxy::with(&upstream.address(), &[("audit", "off")]);
    let whole = [row(&["Ann"]), complete("SELECT 1"), ready(b'I')]
        .concat()
        .len();
    let most = 2000;
    let upstream = std::sync::Arc::new(upstream);
    let mut answered = 0;
    for budget in (0..most).step_by(3) {
        // A new text each time, so that every lesson is a whole one.
        let sql = format!("SELECT name AS n{budget} FROM t WHERE id = 42");
        let address = proxy.address().to_owned();
        let client = std::thread::spawn(move || {
            let packet = startup(&[("user", "me"), ("database", "db")]);
            let mut stream = TcpStream::connect(address).unwrap();
            stream
                .set_read_timeout(Some(Duration::from_secs(60)))
                .unwrap();
            stream
                .write_all(&[packet, query(&sql), frame(b'X', b"")].concat())
                .unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            bytes
        });
        dying_server(&upstream, budget);
        let bytes = client.join().unwrap();
        let (frames, _) = frames::cut(&bytes);
        let end = tags(&frames[frames.len().saturating_sub(3)..]);
        if end == "DCZ" {
            assert!(bytes.len() >= whole);
            answered += 1;
            if answered > 3 {
                return;
            }
        } else {
            // What it can still be told is that the server is gone, unless it is inside a message.
            let told = frames
                .last()
                .is_some_and(|frame| frame.sqlstate() == "08006");
            let early = frames
                .last()
                .is_none_or(|frame| b"RSKZTDC".contains(&frame.tag));
            assert!(told || early, "{budget}: {frames:?}");
        }
    }
    panic!("the conversation never came to its end");
}

#[test]
fn a_server_that_dies_in_a_query_is_an_error_not_a_wait() {
    for converted in [false, true] {
        let mut scene = match converted {
            true => learned(SQL, &SELECT, &[]),
            false => met(&[("mode", "off")]),
        };
        scene.client.send(&query(SQL));
        scene.peer.next();
        drop(scene.peer);
        let rest = scene.client.rest();
        assert_eq!(tags(&rest), "E");
        assert_eq!(rest[0].sqlstate(), "08006");
        assert_eq!(rest[0].field(b'V').as_deref(), Some("FATAL"));
    }
}

#[test]
fn the_last_words_of_a_server_are_its_own() {
    let proxy = Proxy::start(&server::address());
    let database = server::database("CREATE TABLE nap AS SELECT 1 AS id, 5 AS seconds");
    for run in 0..3 {
        let mut client = Client::login(proxy.address(), &database);
        let mut admin = Client::login(proxy.address(), "postgres");
        if run > 0 {
            client.send(&query("SELECT pg_sleep(seconds) FROM nap WHERE id = 1"));
            std::thread::sleep(Duration::from_millis(200));
        }
        let pid = client.key.0;
        assert_eq!(
            admin.value(&format!("SELECT pg_terminate_backend({pid})")),
            "t"
        );
        let last = client.rest().pop().unwrap();
        assert_eq!((last.tag, last.sqlstate().as_str()), (b'E', "57P01"));
    }
}

#[test]
fn one_client_too_many_is_refused_and_told_so() {
    let proxy = Proxy::with(&server::address(), &[("max_clients", "2")]);
    let mut clients = [0, 1].map(|_| Client::login(proxy.address(), "postgres"));
    let mut third = Client::connect(proxy.address());
    third.send(&startup(&ME));
    let answer = third.rest();
    assert_eq!(
        (tags(&answer).as_str(), answer[0].sqlstate().as_str()),
        ("E", "53300")
    );
    // A cancel request is no client.
    clients[0].send(&query("SELECT pg_sleep(5)"));
    std::thread::sleep(Duration::from_millis(100));
    let key = clients[0].key.clone();
    Client::connect(proxy.address()).send(&frames::cancel(key.0, &key.1));
    assert_eq!(clients[0].until(b'E').last().unwrap().sqlstate(), "57014");

    let [first, second] = clients;
    drop((first, second));
    proxy.await_connections(0);
    Client::login(proxy.address(), "postgres").run("SELECT 1");
    assert_eq!(proxy.summary().count(Counter::ConnectionsRefused), 2);
}

#[test]
fn who_does_not_log_in_keeps_nobody_out() {
    let users = Users::new(&[("postgres", "secret")]);
    let ways: [&[(&str, &str)]; 2] = [
        &[],
        &[("auth_type", "scram-sha-256"), ("auth_file", users.path())],
    ];
    for way in ways {
        let settings = [&[("max_clients", "5")], way].concat();
        let proxy = Proxy::with(&server::address(), &settings);
        let mut first = login(proxy.address(), "postgres", "secret").entered();
        // Some say nothing, some the half of it, and some do not prove who they are. If logins are
        // relayed, that is the server's to wait for.
        let mut silent: Vec<_> = (0..20)
            .map(|number| {
                let mut client = Client::connect(proxy.address());
                let begun = startup(&ME);
                match number % 3 {
                    0 => {}
                    1 => client.send(&begun[..9]),
                    _ if way.is_empty() => {}
                    _ => client.send(&begun),
                }
                client
            })
            .collect();
        let mut others: Vec<_> = (0..4)
            .map(|_| login(proxy.address(), "postgres", "secret").entered())
            .collect();
        for client in others.iter_mut().chain([&mut first]) {
            client.run("SELECT 1");
        }
        assert_eq!(silent[0].rest()[0].sqlstate(), "53300");
        // All who are there have logged in.
        let mut more = Client::connect(proxy.address());
        more.send(&startup(&ME));
        assert_eq!(more.rest()[0].sqlstate(), "53300");
    }
}

#[test]
fn a_client_that_does_not_log_in_is_sent_away() {
    let upstream = Upstream::listen();
    let proxy = Proxy::with(&upstream.address(), &[("login_timeout_s", "1")]);
    let started = Instant::now();
    let mut silent = Client::connect(proxy.address());
    let mut half = Client::connect(proxy.address());
    half.send(&startup(&ME)[..9]);
    // This one waits for a server that asks for a password and gets none.
    let mut waiting = Client::connect(proxy.address());
    waiting.send(&startup(&ME));
    let mut peer = upstream.accept();
    peer.send(&frame(b'R', &[0, 0, 0, 3]));
    assert_eq!(waiting.next().unwrap().tag, b'R');
    for client in [&mut silent, &mut half, &mut waiting] {
        let answer = client.rest();
        assert_eq!(
            (tags(&answer).as_str(), answer[0].sqlstate().as_str()),
            ("E", "08000")
        );
    }
    let time = started.elapsed();
    assert!(
        time > Duration::from_millis(800) && time < Duration::from_secs(5),
        "{time:?}"
    );
}

#[test]
fn a_server_that_is_not_there_is_an_error_at_once_until_it_comes() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let proxy = Proxy::start(&address.to_string());
    let started = Instant::now();
    let mut client = Client::connect(proxy.address());
    client.send(&startup(&ME));
    let answer = client.rest();
    assert_eq!(
        (tags(&answer).as_str(), answer[0].sqlstate().as_str()),
        ("E", "08006")
    );
    assert!(started.elapsed() < Duration::from_secs(2));

    let upstream = Upstream::from(TcpListener::bind(address).unwrap());
    let (mut client, mut peer) = upstream.login(&proxy);
    client.send(&query("SHOW port"));
    peer.expect(&query("SHOW port"));
}

#[test]
fn a_server_that_speaks_out_of_turn_ends_one_connection() {
    for bytes in [
        frame(b'Z', b"I"),
        frame(b'2', b""),
        frame(b'?', b"what"),
        b"Q\0\0\0\x01".to_vec(),
        vec![0xff; 64],
    ] {
        let mut scene = learned(SQL, &SELECT, &[]);
        let (mut other, mut peer) = scene.login();
        scene.client.send(&query(SQL));
        scene.peer.take("BDES");
        scene.peer.send(&bytes);
        drop(scene.peer);
        scene.client.rest();
        other.send(&query("SHOW port"));
        peer.expect(&query("SHOW port"));
    }
}

#[test]
fn the_readers_of_wire_and_sql_take_any_bytes() {
    let mut numbers = Numbers(13);
    let corpus: [&[u8]; 8] = [
        b"SELECT name FROM t WHERE id = 42 AND x IN (1, -2, '3', E'\\n', $a$b$a$) -- c",
        b"INSERT INTO t VALUES (1, 'a'), (2.5e3, NULL) ON CONFLICT (id) DO UPDATE SET a = 'b'",
        b"WITH x AS (SELECT 1) UPDATE t SET a = (SELECT 'b' || 5) WHERE b BETWEEN 1 AND 2",
        b"/* a /* b */ c */ SELECT \"a\"\"b\", U&'\\0041', B'1', X'ff', interval '1 day' * - 5",
        b"SERROR\0VERROR\0C22P02\0Mbad\0P5\0\0",
        b"\0\x02\0\0\0\x01a\xff\xff\xff\xff",
        b"Q\0\0\0\x0dselect 1\0S\0\0\0\x04",
        b"SELECT ((((((((((1))))))))))::int[]::text COLLATE \"C\"",
    ];
    for round in 0..20_000 {
        let mut bytes = if round % 4 == 0 {
            let length = numbers.next() % 80;
            numbers.bytes(usize::try_from(length).unwrap())
        } else {
            corpus[round % corpus.len()].to_vec()
        };
        for _ in 0..round % 5 {
            let place = usize::try_from(numbers.next()).unwrap() % bytes.len().max(1);
            let byte = b"'\"$();-/*\\0a \0E"[usize::try_from(numbers.next()).unwrap() % 15];
            match numbers.next() % 3 {
                0 => bytes.truncate(place),
                1 => bytes.insert(place.min(bytes.len()), byte),
                _ => bytes
                    .iter_mut()
                    .skip(place)
                    .take(1)
                    .for_each(|old| *old = byte),
            }
        }
        pgautoprep::wire::frame::fuzz_header(&bytes);
        pgautoprep::wire::backend::fuzz_readers(&bytes);
        let _ = pgautoprep::wire::requests::fuzz_readers(&bytes);
        pgautoprep::sql::scan::fuzz_scan(&bytes);
        pgautoprep::sql::eligible::fuzz_judge(&bytes);
    }
}

#[test]
fn a_client_that_has_said_all_still_gets_its_answers() {
    let proxy = Proxy::start(&server::address());
    let database = server::database("CREATE TABLE t AS SELECT generate_series(1, 9) AS id");
    let login = startup(&[("user", "postgres"), ("database", &database)]);
    for _ in 0..4 {
        let queries = (0..9).map(|id| query(&format!("SELECT id, 'x' FROM t WHERE id = {id}")));
        let all: Vec<u8> = queries.flatten().collect();
        let bytes = send_and_listen(proxy.address(), &[&login[..], &all].concat());
        let (answers, rest) = frames::cut(&bytes);
        assert!(rest.is_empty());
        assert_eq!(tags(&answers).matches("CZ").count(), 9);
    }
    let summary = proxy.summary();
    assert_eq!(summary.count(Counter::Queries), 36, "{summary}");
}

#[test]
fn the_log_holds_no_literal() {
    let mut proxy = Process::start(&server::address(), &[("log_level", "trace")]);
    let mut client = Client::login(&proxy.address, "postgres");
    for _ in 0..8 {
        client.query("SELECT oid, 'hunter2' FROM pg_class WHERE relname = 'hunter2'");
        client.query("SELECT oid FROM pg_class WHERE relname > 'hunter2' AND relpages = 'hunter2'");
        client.query("SELECT oid FROM pg_class ORDER BY relname = 'hunter2', 1 LIMIT 1");
        client.query("SELECT date 'hunter2'");
    }
    drop(client);
    proxy.signal(rustix::process::Signal::TERM);
    let (_, _, log) = proxy.ended();
    assert!(log.contains("login") && !log.contains("hunter2"), "{log}");
}
