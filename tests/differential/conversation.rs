//! A conversation, played directly and through the proxy.

use super::chance::Chance;
use super::client::{Client, Frame};
use super::events;
use super::statements::statement;
use super::template::Template;
use super::world::{Pair, Proxy, server};

/// What happens at one point of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Execution `round` of a template.
    Run { template: usize, round: usize },
    /// A text without literals.
    Say(&'static str),
    /// A text of another session.
    Beside(&'static str),
    /// The client comes back on a new connection.
    Reconnect,
}

/// Statements, and when each is executed with which literals.
#[derive(Clone)]
pub(crate) struct Conversation {
    pub(crate) templates: Vec<Template>,
    /// By template, round and slot.
    pub(crate) values: Vec<Vec<Vec<String>>>,
    pub(crate) steps: Vec<Step>,
    /// The proxy's `prepare_threshold`.
    pub(crate) threshold: usize,
    /// The proxy's `plans`.
    pub(crate) plans: &'static str,
    /// More than values changes between its statements.
    pub(crate) eventful: bool,
}

/// Where the two answers part.
pub(crate) struct Difference {
    /// Index of the step.
    pub(crate) step: usize,
    pub(crate) direct: Vec<Frame>,
    pub(crate) proxied: Vec<Frame>,
}

/// How a conversation went.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Answers that were errors.
    pub(crate) errors: usize,
    /// Answers that differ in what cannot be known.
    pub(crate) excused: usize,
    pub(crate) difference: Option<Difference>,
}

/// Stands for a new connection in a list of texts.
pub(crate) const RECONNECT: &str = "\\connect";

/// The values of `plans`.
pub(crate) const PROVEN: &str = "proven";
pub(crate) const SERVER: &str = "server";

/// Precedes the text of another session.
pub(crate) const BESIDE: &str = "\\beside ";

impl Conversation {
    pub(crate) fn new(seed: u64, plans: &'static str) -> Self {
        let chance = &mut Chance::new(seed);
        let total = plans == SERVER;
        let templates = 0..=chance.below(3);
        let templates: Vec<Template> = templates.map(|_| statement(chance, total)).collect();
        let rounds = 9 + chance.below(5);
        let mut values = Vec::new();
        for template in &templates {
            let mut round = || {
                template
                    .slots
                    .iter()
                    .map(|slot| slot.token(chance))
                    .collect()
            };
            values.push((0..rounds).map(|_| round()).collect());
        }
        let reconnect = chance.percent(25).then(|| chance.below(rounds));
        let eventful = chance.percent(40);
        let steps = steps(templates.len(), rounds, reconnect, eventful, chance);
        Self {
            templates,
            values,
            steps,
            threshold: 1 + chance.below(2),
            eventful,
            plans,
        }
    }

    /// Whether playing it may leave something behind.
    pub(crate) fn writes(&self) -> bool {
        self.eventful || self.templates.iter().any(|template| template.writes)
    }

    /// What is sent.
    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |step: &Step| match step {
            Step::Say(text) => (*text).to_owned(),
            Step::Beside(text) => format!("{BESIDE}{text}"),
            Step::Reconnect => RECONNECT.to_owned(),
            Step::Run { template, round } => {
                let mut out = String::new();
                let values = &self.values[*template][*round];
                self.templates[*template].root.render(values, &mut out);
                out
            }
        };
        self.steps.iter().map(text).collect()
    }
}

/// Rounds over all templates, some of them in transactions.
fn steps(
    templates: usize,
    rounds: usize,
    reconnect: Option<usize>,
    eventful: bool,
    chance: &mut Chance,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for round in 0..rounds {
        if reconnect == Some(round) {
            steps.push(Step::Reconnect);
        }
        if chance.percent(2) {
            let settings = [
                "SET DateStyle = 'SQL, DMY'",
                "SET TimeZone = 'Asia/Tokyo'",
                "SET IntervalStyle = 'iso_8601'",
                "SET extra_float_digits = 0",
                "SET bytea_output = 'escape'",
                "RESET ALL",
            ];
            steps.push(Step::Say(chance.pick::<&'static str>(&settings)));
        }
        let (before, between, after) = match chance.below(20) {
            // What is first met inside a transaction is not learned there.
            _ if round < 2 && chance.percent(80) => ("", "", ""),
            0..=2 => ("BEGIN", "", "COMMIT"),
            3 => ("BEGIN", "", "ROLLBACK"),
            4 => ("BEGIN", "SAVEPOINT s", "COMMIT"),
            5 => ("BEGIN; SAVEPOINT s", "ROLLBACK TO s", "COMMIT"),
            6 => (
                "BEGIN ISOLATION LEVEL REPEATABLE READ",
                "SELECT 1",
                "COMMIT",
            ),
            _ => ("", "", ""),
        };
        let mut played = Vec::new();
        for template in 0..templates {
            played.push(Step::Say(if template == 0 { before } else { between }));
            played.push(Step::Run { template, round });
        }
        played.push(Step::Say(after));
        match eventful && round > 1 {
            true => events::around(&mut steps, played, chance),
            false => steps.extend(played),
        }
    }
    steps.retain(|step| *step != Step::Say(""));
    steps
}

/// Whether all that differs is what cannot be known, inside a transaction: 13 does not say which
/// parameter is wrong, and so the position is left out if several might be (H-30 of the fidelity
/// rules); and a statement that is prepared takes its locks where no name in its text is being
/// looked at, so that who gives up waiting is not told which it was.
fn is_known(direct: &[Frame], proxied: &[Frame]) -> bool {
    let [error, ready] = direct else {
        return false;
    };
    let [other, _] = proxied else {
        return false;
    };
    let waited = matches!(
        error.field(b'C').as_deref(),
        Some("55P03" | "57014" | "40P01")
    );
    (server().version_major() < 14 || waited)
        && (error.tag, other.tag, &*ready.body) == (b'E', b'E', &b"E"[..])
        && other.field(b'P').is_none()
        && error.without(b'P') == *other
}

/// Whether two answers are the same but for the order in which their rows and notices come.
///
/// An error ends the rows that come before it, wherever it stands among them, and of several that
/// would fail the first to come does: so two errors are alike.
fn are_permuted(direct: &[Frame], proxied: &[Frame]) -> bool {
    let fails = |frames: &[Frame]| frames.iter().any(|frame| frame.tag == b'E');
    if fails(direct) && fails(proxied) {
        return direct.last() == proxied.last();
    }
    let sorted = |frames: &[Frame]| {
        let mut sorted: Vec<(u8, Vec<u8>)> = Vec::new();
        sorted.extend(frames.iter().map(|frame| (frame.tag, frame.body.clone())));
        sorted.sort_unstable();
        sorted
    };
    sorted(direct) == sorted(proxied)
}

/// Sends the texts to both, one after the other, until the answers differ. Of a proxy that leaves
/// the choice of plans to the server they may differ in the order of what comes.
pub(crate) fn play(pair: &Pair, proxy: &Proxy, texts: &[String]) -> Outcome {
    let mut outcome = Outcome::default();
    let login = || {
        [
            Client::login(&pair.address, &pair.names[0]),
            Client::login(&proxy.address, &pair.names[1]),
        ]
    };
    let mut clients = login();
    let mut others = None;
    for (step, text) in texts.iter().enumerate() {
        if text == RECONNECT {
            clients = login();
            continue;
        }
        let (clients, text) = match text.strip_prefix(BESIDE) {
            Some(text) => (others.get_or_insert_with(login), text),
            None => (&mut clients, text.as_str()),
        };
        for client in &mut *clients {
            client.send(text);
        }
        let [direct, proxied] = clients.each_mut().map(Client::answer);
        let differs = direct != proxied;
        let is_order = proxy.plans == SERVER && differs && are_permuted(&direct, &proxied);
        let excused = differs && (is_order || is_known(&direct, &proxied));
        outcome.excused += usize::from(excused);
        if differs && !excused {
            outcome.difference = Some(Difference {
                step,
                direct,
                proxied,
            });
            break;
        }
        outcome.errors += usize::from(direct.iter().any(|frame| frame.tag == b'E'));
    }
    outcome
}
