//! Sessions that come together: each is answered what it would be alone, whatever the others do,
//! and although its reads run on their connections.
//!
//! `PGAUTOPREP_RANDOM_SEED` and `PGAUTOPREP_RANDOM_COUNT` choose the gatherings and how many
//! statements are said in all of them.

use super::client::{Client, Frame};
use super::conversation::{PROVEN, RECONNECT};
use super::gathering::{Gathering, Pace, Phase, SETUP, Who, gathering};
use super::random::variable;
use super::world::{Pair, Proxy, changing_roles, server};
use pgautoprep::metrics::Counter;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Without variables: some thousand statements, always the same.
const SEED: u64 = 20_261_123;
const COUNT: usize = 5000;

/// Statements of one gathering.
const SIZE: usize = 2000;

/// The share of statements, in percent, that must have been converted.
const SHARE: u64 = 30;

/// Findings after which there is enough to read.
const ENOUGH: usize = 4;

/// How long the smallest gathering that differs is looked for.
const SEARCH: Duration = Duration::from_secs(90);

/// Times that a smaller one is played, because what differs may do so by chance.
const TRIES: usize = 2;

/// What each session was answered in a phase, text by text.
type Answers = Vec<Vec<Vec<Frame>>>;

/// Where the answers part.
struct Difference {
    phase: usize,
    session: usize,
    text: usize,
    direct: Vec<Frame>,
    proxied: Vec<Frame>,
}

#[test]
fn sessions_that_come_together_are_answered_alike() {
    let first: u64 = variable("PGAUTOPREP_RANDOM_SEED", SEED);
    let count: usize = variable("PGAUTOPREP_RANDOM_COUNT", COUNT);
    let _roles = changing_roles();
    let mut pairs = [0, 1].map(|_| Pair::new());
    for pair in &mut pairs {
        pair.search("hall, public");
    }
    let proxy = Proxy::sharing(&pairs[0].address, PROVEN, 1, Some("on"));
    let (mut said, mut failed, mut findings) = (0, 0, Vec::new());
    for seed in first.. {
        if said >= count || findings.len() >= ENOUGH {
            break;
        }
        let all = gathering(seed, SIZE.min(count));
        said += all.phases.iter().map(Phase::len).sum::<usize>();
        let (errors, difference) = play(&pairs, &proxy, &all);
        failed += errors;
        if let Some(difference) = difference {
            let seen = describe(&all, &difference, "with what others had left");
            let finding = match smallest(&pairs, &all, &difference) {
                Some((small, difference)) => describe(&small, &difference, "the smallest found"),
                None => "    not again with a proxy that knows nothing\n".to_owned(),
            };
            let finding = format!("seed {seed}: {seen}{finding}");
            eprintln!("{finding}");
            findings.push(finding);
        }
    }
    let summary = proxy.summary();
    let counters = [Counter::Converted, Counter::Queries, Counter::ReadsShared];
    let [converted, queries, shared] = counters.map(|counter| summary.count(counter));
    eprintln!(
        "server {}, seed {first}: {said} statements of sessions together, {failed} failed, \
         {converted} of {queries} queries converted, {shared} read by others, {} findings\n\
         {summary}",
        server().version_major(),
        findings.len(),
    );
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert_eq!(summary.count(Counter::ErrorsProxy), 0, "{summary}");
    assert!(converted * 100 >= queries * SHARE, "nothing to compare");
    // Whether several come at once is a matter of chance.
    let has_shared = count < COUNT || shared >= 10;
    let is_off = std::env::var("PGAUTOPREP_SHARED_READS").is_ok_and(|value| value != "on");
    assert!(has_shared || is_off, "{shared} reads on other connections");
}

/// One session, wherever it is connected to.
struct Guest<'a> {
    address: &'a str,
    /// Which of a pair's databases are those of this side.
    side: usize,
    pairs: &'a [Pair; 2],
    who: Who,
    client: Client,
    notified: Vec<Vec<u8>>,
}

impl<'a> Guest<'a> {
    fn enter(address: &'a str, side: usize, pairs: &'a [Pair; 2], who: Who) -> (Self, Vec<Frame>) {
        let (client, answer) = login(address, &pairs[who.database].names[side], who);
        let guest = Self {
            address,
            side,
            pairs,
            who,
            client,
            notified: Vec::new(),
        };
        (guest, answer)
    }

    /// Says a text and waits for the answer.
    fn says(&mut self, text: &str) -> Vec<Frame> {
        if text == RECONNECT {
            let database = &self.pairs[self.who.database].names[self.side];
            let (client, answer) = login(self.address, database, self.who);
            self.client = client;
            return answer;
        }
        self.client.send(text);
        self.answer()
    }

    /// The next answer. Notifications come when they will, so they are kept apart, without the
    /// process they are from.
    fn answer(&mut self) -> Vec<Frame> {
        let mut out = Vec::new();
        for mut frame in self.client.answer() {
            match frame.tag {
                b'A' => self.notified.push(frame.body.split_off(4)),
                b'!' => {
                    // Whatever the system says to that.
                    frame.body.clear();
                    out.push(frame);
                }
                b'D' => {
                    hide_slots(&mut frame.body);
                    out.push(frame);
                }
                _ => out.push(frame),
            }
        }
        out
    }
}

/// Leaves out of a row in which place among all sessions the temporary schemas are, and with it the
/// lengths of its columns.
fn hide_slots(row: &mut Vec<u8>) {
    const SCHEMA: &[u8] = b"pg_temp_";
    let has_one = |value: &[u8]| value.windows(SCHEMA.len()).any(|part| part == SCHEMA);
    if !has_one(row) {
        return;
    }
    let mut shown = Vec::new();
    let mut rest = &row[2..];
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        let (value, tail) = tail.split_at(length);
        let is_hidden = |byte: &u8| has_one(value) && byte.is_ascii_digit();
        shown.extend(value.iter().filter(|byte| !is_hidden(byte)));
        shown.push(0);
        rest = tail;
    }
    *row = shown;
}

/// Logs in; the key is another each time.
fn login(address: &str, database: &str, who: Who) -> (Client, Vec<Frame>) {
    let known = [("user", who.role), ("database", database)];
    let (client, mut answer) = Client::enter(address, &[&known, who.options].concat());
    answer.retain(|frame| frame.tag != b'K');
    (client, answer)
}

/// All sessions of one side.
fn enter<'a>(
    address: &'a str,
    side: usize,
    pairs: &'a [Pair; 2],
    all: &Gathering,
) -> (Vec<Guest<'a>>, Answers) {
    for pair in pairs {
        Client::login(address, &pair.names[side]).run(SETUP);
    }
    std::thread::scope(|scope| {
        let enter = |who: &Who| {
            let who = *who;
            scope.spawn(move || Guest::enter(address, side, pairs, who))
        };
        let entering: Vec<_> = all.sessions.iter().map(enter).collect();
        let entered = entering.into_iter().map(|thread| thread.join().unwrap());
        entered.map(|(guest, answer)| (guest, vec![answer])).unzip()
    })
}

/// Plays one phase to one side.
fn phase(guests: &mut [Guest<'_>], phase: &Phase) -> Answers {
    match phase {
        Phase::Together { pace, texts } => together(guests, *pace, texts),
        Phase::Alone { session, texts } => {
            let mut answers = vec![Vec::new(); guests.len()];
            let guest = &mut guests[*session];
            answers[*session] = texts.iter().map(|text| guest.says(text)).collect();
            answers
        }
        Phase::Locked {
            holder,
            waiter,
            read,
            texts,
        } => {
            let locked =
                guests[*holder].says("BEGIN; LOCK TABLE hall.vault IN ACCESS EXCLUSIVE MODE");
            guests[*waiter].client.send(read);
            let mut answers = together(guests, Pace::Free, texts);
            let unlocked = guests[*holder].says("COMMIT");
            answers[*waiter].push(guests[*waiter].answer());
            answers[*holder].extend([locked, unlocked]);
            answers
        }
    }
}

fn together(guests: &mut [Guest<'_>], pace: Pace, texts: &[Vec<String>]) -> Answers {
    let mut answers = vec![Vec::new(); guests.len()];
    match pace {
        Pace::Free => std::thread::scope(|scope| {
            let all = guests.iter_mut().zip(texts).zip(&mut answers);
            for ((guest, texts), answers) in all {
                if !texts.is_empty() {
                    scope.spawn(move || {
                        answers.extend(texts.iter().map(|text| guest.says(text)));
                    });
                }
            }
        }),
        Pace::Ahead => {
            for (guest, texts) in guests.iter_mut().zip(texts) {
                texts.iter().for_each(|text| guest.client.send(text));
            }
            for ((guest, texts), answers) in guests.iter_mut().zip(texts).zip(&mut answers) {
                answers.extend(texts.iter().map(|_| guest.answer()));
            }
        }
        Pace::Even => {
            for turn in 0..texts.iter().map(Vec::len).max().unwrap_or(0) {
                let says = |session: usize| texts[session].get(turn);
                for (session, guest) in guests.iter_mut().enumerate() {
                    match says(session) {
                        Some(text) if text == RECONNECT => answers[session].push(guest.says(text)),
                        Some(text) => guest.client.send(text),
                        None => {}
                    }
                }
                for (session, guest) in guests.iter_mut().enumerate() {
                    if says(session).is_some_and(|text| text != RECONNECT) {
                        answers[session].push(guest.answer());
                    }
                }
            }
        }
    }
    answers
}

/// Plays to both sides, phase by phase, until the answers differ; counts the errors.
fn play(pairs: &[Pair; 2], proxy: &Proxy, all: &Gathering) -> (usize, Option<Difference>) {
    let (mut direct, answers) = enter(&pairs[0].address, 0, pairs, all);
    let (mut proxied, others) = enter(&proxy.address, 1, pairs, all);
    if let Some(difference) = part(0, &answers, &others) {
        return (0, Some(difference));
    }
    let mut errors = 0;
    for (index, said) in all.phases.iter().enumerate() {
        let [answers, others] = [&mut direct, &mut proxied].map(|guests| phase(guests, said));
        if let Some(difference) = part(index, &answers, &others) {
            return (errors, Some(difference));
        }
        let is_error = |answer: &&Vec<Frame>| answer.iter().any(|frame| frame.tag == b'E');
        errors += answers.iter().flatten().filter(is_error).count();
    }
    // What was notified has come with the next answer.
    for session in 0..direct.len() {
        let [one, other] = [&mut direct, &mut proxied].map(|guests| {
            guests[session].says("SELECT 1");
            guests[session].notified.concat()
        });
        if one != other {
            let [direct, proxied] = [one, other].map(|body| vec![Frame { tag: b'A', body }]);
            let difference = Difference {
                phase: all.phases.len(),
                session,
                text: 0,
                direct,
                proxied,
            };
            return (errors, Some(difference));
        }
    }
    (errors, None)
}

/// The first answer that is not the same.
fn part(phase: usize, direct: &Answers, proxied: &Answers) -> Option<Difference> {
    for (session, (direct, proxied)) in direct.iter().zip(proxied).enumerate() {
        for (text, (direct, proxied)) in direct.iter().zip(proxied).enumerate() {
            if direct != proxied {
                return Some(Difference {
                    phase,
                    session,
                    text,
                    direct: direct.clone(),
                    proxied: proxied.clone(),
                });
            }
        }
    }
    None
}

/// Plays to a proxy that knows nothing yet, more than once.
fn afresh(pairs: &[Pair; 2], all: &Gathering, times: usize) -> Option<Difference> {
    (0..times).find_map(|_| {
        let proxy = Proxy::sharing(&pairs[0].address, PROVEN, 1, Some("on"));
        play(pairs, &proxy, all).1
    })
}

/// Leaves out phases, many at once and then one by one, and then what sessions say, as long as
/// something differs.
fn smallest(
    pairs: &[Pair; 2],
    all: &Gathering,
    seen: &Difference,
) -> Option<(Gathering, Difference)> {
    let until = Instant::now() + SEARCH;
    let mut small = all.clone();
    small.phases.truncate(seen.phase + 1);
    let mut difference = afresh(pairs, &small, 2 * TRIES)?;
    let mut keep = |candidate: Gathering, small: &mut Gathering| {
        let found = match Instant::now() < until {
            true => afresh(pairs, &candidate, TRIES),
            false => None,
        };
        let found = found?;
        *small = candidate;
        small.phases.truncate(found.phase + 1);
        difference = found;
        Some(())
    };
    let mut size = small.phases.len() / 2;
    while size > 0 {
        let mut from = 0;
        while from + size < small.phases.len() {
            let mut fewer = small.clone();
            fewer.phases.drain(from..from + size);
            if keep(fewer, &mut small).is_none() {
                from += size;
            }
        }
        size /= 2;
    }
    for session in (1..small.sessions.len()).rev() {
        let mut fewer = small.clone();
        for phase in &mut fewer.phases {
            match phase {
                Phase::Together { texts, .. } | Phase::Locked { texts, .. } => {
                    texts[session].clear();
                }
                Phase::Alone { .. } => {}
            }
        }
        let _ = keep(fewer, &mut small);
    }
    Some((small, difference))
}

/// Where the answers part, and what the session and whoever was alone had said before.
fn describe(all: &Gathering, difference: &Difference, which: &str) -> String {
    let session = difference.session;
    let mut out = format!(
        "phase {} of {}, session {session} of {} ({:?}), {which}:\n",
        difference.phase,
        all.phases.len(),
        all.sessions.len(),
        all.sessions[session],
    );
    let is_read = |text: &&String| text.starts_with("SELECT") && text.contains("WHERE");
    for (index, phase) in all.phases.iter().take(difference.phase + 1).enumerate() {
        let (who, how, mut texts) = match phase {
            Phase::Together { pace, texts } => {
                (session, format!("{pace:?}"), texts[session].clone())
            }
            Phase::Alone { session, texts } => (*session, "Alone".to_owned(), texts.clone()),
            Phase::Locked { waiter, read, .. } => {
                (*waiter, "Locked".to_owned(), vec![read.clone()])
            }
        };
        if index < difference.phase {
            texts.retain(|text| !is_read(&text));
        } else if matches!(phase, Phase::Together { .. }) {
            texts.truncate(difference.text + 1);
        }
        for text in texts {
            let _ = writeln!(out, "    {index} {how} session {who}: {text}");
        }
    }
    let sides = [
        ("direct ", &difference.direct),
        ("proxied", &difference.proxied),
    ];
    let pairs = difference.direct.iter().zip(&difference.proxied);
    let same = pairs.take_while(|(one, other)| one == other).count();
    for (side, frames) in sides {
        for frame in frames.iter().skip(same).take(6) {
            let line: String = format!("{frame:?}").chars().take(400).collect();
            let _ = writeln!(out, "// {side}: {line}");
        }
    }
    out
}
