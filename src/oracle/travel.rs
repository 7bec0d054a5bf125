//! The state *travel*: the oracle is asked whether a read may run on the server connection of
//! another session.
//!
//! The server has a proof of its own. It lets a parallel worker run a plan only if the answer
//! depends on nothing but the database and what a worker is given of its session
//! (`InitializeParallelDSM` in `parallel.c`). A setting for tests has it put a Gather on top of
//! every plan that may run in one worker as a whole (`standard_planner` in `planner.c`), and
//! EXPLAIN shows it. Some things keep that from being misread:
//!
//! - the Gather must be that one: `Single Copy`. One that the server chooses for its own sake may
//!   compute below itself what a worker may not; its cost is made prohibitive, and nothing is
//!   compiled for it.
//! - the plan is the generic one. Values could make a condition false that calls what a worker may
//!   not run, and another value would not.
//! - the text is prepared under a name of its own, and NULL stands for each value. A statement that
//!   clients use would keep the plan.
//! - labels are believed by the server, keywords and functions behind types not looked at. So what
//!   the text mentions and reaches must pass two lists beside it (`near`, `reach`).
//! - where only the shape of the plan forbids the Gather, as a window does, because a worker would
//!   see a part of the rows, the lists have to do alone (`shape`).
//! - nothing is left: the settings are local to the implicit transaction, whichever way it ends,
//!   and the name is closed in a message of its own.

mod clock;
mod near;
mod reach;
mod shape;

use super::answer::Answer;
use super::candidate::{Candidate, Proven};
use super::state::{State, Step};
use super::{Asked, Env};
use crate::metrics::Counter;
use crate::reason::{Reason, Stay};
use crate::sql::hazard::Hazards;
use crate::sql::survey::Known as _;
use crate::sql::touched::{Name, Touched};
use crate::sql::travel::{Mentions, mentions};
use crate::standing::Standing;
use crate::statement::{Clock, Footprint, Plans, Statement, mirror};
use crate::wire::{backend, frontend};
use near::Settled;
use std::sync::Arc;

/// What is appended to the name of a statement for the one that is only explained. Names of clients
/// do not begin as it does, and ours end with a digit of base 36.
const SUFFIX: u8 = b'_';

/// The candidate may stand for its original from now on, as far as this was proven. It is asked
/// whether it may run elsewhere.
pub(super) fn trust(
    candidate: &Candidate,
    proven: Proven,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    candidate.trust(proven, env);
    follow(&candidate.statement, candidate.name, env)
}

/// Asks about a statement that has just been trusted or confirmed and is held under this name, if
/// that is wanted, worth it, and not known yet.
pub(super) fn follow(
    statement: &Arc<Statement>,
    name: mirror::Name,
    env: &mut Env<'_>,
) -> Result<Step, Reason> {
    let Some((epoch, mentions)) = wanted(statement, env) else {
        return Ok(Step::Learned);
    };
    let probe = [name.as_bytes(), &[SUFFIX]].concat();
    let major = env.standing.dialect.server_major;
    put_plan(
        env.asks,
        &probe,
        statement.text(),
        statement.parameters(),
        major,
    );
    if is_near(&mentions, env.standing) {
        env.ask_catalog(&near::own());
        env.asks.careful(&near::question(&mentions));
    } else {
        env.asks.careful(&reach::question(&mentions));
    }
    let state = State::Travel(Arc::clone(statement), epoch, Vec::new());
    Ok(Step::Ask(state))
}

/// The catalog epoch as of which the statement is to be asked about, and what its text mentions;
/// `None` if it is not.
fn wanted(statement: &Statement, env: &mut Env<'_>) -> Option<(u64, Mentions)> {
    if !env.lent.settings.proves_reads || env.asks.is_inside {
        return None;
    }
    let epoch = statement.known_at()?;
    if statement.footprint()? != Footprint::Unasked {
        return None;
    }
    let mentions = match mentions(statement.text()) {
        Ok(mentions) => mentions,
        Err(stay) => {
            record(statement, epoch, (Footprint::Stays(stay), Clock::Seen), env);
            return None;
        }
    };
    if reads_many(statement, &mentions, env.standing) {
        let stays = Footprint::Stays(Stay::Many);
        record(statement, epoch, (stays, Clock::Seen), env);
        return None;
    }
    let pays = statement.earns_footprint() && env.lent.shapes.questions().are_left(env.now);
    (env.lent.settings.is_eager() || pays).then_some((epoch, mentions))
}

/// Whether the small questions may do: nothing that is mentioned is known to be followed.
fn is_near(mentions: &Mentions, standing: &mut Standing) -> bool {
    let (parents, names) = (parents(mentions, standing), names(mentions));
    near::may_do(mentions) && parents.is_empty() && !standing.database.may_be_views(&names)
}

/// The names that a text mentions.
fn names(mentions: &Mentions) -> Vec<Name> {
    let names = mentions.names.iter();
    names.map(|name| Name::from(name.as_bytes())).collect()
}

/// Those of them that are names of what has partitions or children.
fn parents(mentions: &Mentions, standing: &mut Standing) -> Vec<Name> {
    let known = Arc::clone(standing.names());
    let mut names = names(mentions);
    names.retain(|name| known.of(name).has(Hazards::PARTITIONED));
    names
}

/// Whether the generic plan of the statement, which nobody else asks for, would lock many
/// partitions or an unknown number of them.
fn reads_many(statement: &Statement, mentions: &Mentions, standing: &mut Standing) -> bool {
    if statement.plans() == Plans::Generic {
        return false;
    }
    let parents = parents(mentions, standing);
    let database = &standing.database;
    // What a view reads is not part of its family.
    let are_views = !parents.is_empty() && database.may_be_views(&parents);
    are_views || !database.resolved(&Touched::families(parents)).is_bounded()
}

/// The answers are here, behind those that were `told` before. What could not be answered is asked
/// again at another time; the statement is as good as it was.
pub(super) fn answered(
    (statement, epoch): (Arc<Statement>, u64),
    told: Vec<Answer>,
    answers: Vec<Answer>,
    env: &mut Env<'_>,
) -> Step {
    let all: Vec<Answer> = told.into_iter().chain(answers).collect();
    match &all[..] {
        [parsed, plan, _closed, reached] => {
            decide(&statement, epoch, [parsed, plan, reached], env);
        }
        [parsed, plan, _closed, found @ ..] if found.iter().all(|it| it.error.is_none()) => {
            let Ok(mentions) = mentions(statement.text()) else {
                return Step::Learned;
            };
            let told = match near::settled(&mentions, found) {
                Settled::Known(reached) => {
                    decide(&statement, epoch, [parsed, plan, &reached], env);
                    return Step::Learned;
                }
                Settled::Finer => {
                    env.ask_catalog(&near::finer());
                    all.len()
                }
                Settled::Unknown => {
                    env.asks.careful(&reach::question(&mentions));
                    ABOUT_PLAN
                }
            };
            let told = all.into_iter().take(told).collect();
            return Step::Ask(State::Travel(statement, epoch, told));
        }
        _ => {}
    }
    Step::Learned
}

/// How many answers stand before those of the catalog.
const ABOUT_PLAN: usize = 3;

/// Notes what the answers come to.
fn decide(statement: &Statement, epoch: u64, [parsed, plan, reached]: [&Answer; 3], env: &Env<'_>) {
    if let Some(found) = judge(parsed, plan, reached) {
        let clock = clock::clock(statement.text(), parsed, reached);
        record(statement, epoch, (found, clock), env);
    }
}

fn record(statement: &Statement, epoch: u64, (found, clock): (Footprint, Clock), env: &Env<'_>) {
    statement.note_footprint(epoch, (found, clock));
    let counters = env.lent.counters();
    match found {
        Footprint::Travels => {
            let database = &env.standing.database;
            statement.recipe().tally(database).has_travelled();
            counters.add(Counter::ReadsTravel, 1);
        }
        Footprint::Stays(stay) => {
            counters.stays(stay);
            tracing::debug!(
                stay = stay.label(),
                shape = statement.recipe().shape().text_for_display(),
                "stays at home"
            );
        }
        Footprint::Unasked => {}
    }
}

/// Asks for the plan that a worker might run: three questions.
fn put_plan(asks: &mut Asked, probe: &[u8], text: &[u8], types: &[u32], major: u16) {
    asks.parse(probe, text, types);
    asks.careful(&explain(probe, types.len(), major));
    asks.question(|out| {
        frontend::close_statement(out, probe);
        out.extend_from_slice(frontend::SYNC_FRAME);
    });
}

/// Asks for the generic plan of a prepared statement, with the server's proof on top if there is
/// one.
fn explain(probe: &[u8], arguments: usize, major: u16) -> Vec<u8> {
    let forced = match major {
        ..16 => "force_parallel_mode",
        _ => "debug_parallel_query",
    };
    let settings = format!(
        "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL {forced} = on; \
         SET LOCAL max_parallel_workers_per_gather = 2; SET LOCAL parallel_setup_cost = 1e10; "
    );
    let mut out = settings.into_bytes();
    out.extend_from_slice(b"EXPLAIN (COSTS OFF, FORMAT JSON) EXECUTE ");
    out.extend_from_slice(probe);
    for argument in 0..arguments {
        out.extend_from_slice(if argument == 0 { b"(NULL" } else { b",NULL" });
    }
    if arguments > 0 {
        out.push(b')');
    }
    out
}

/// What the answers come to; `None` if there was no answer.
fn judge(parsed: &Answer, plan: &Answer, reached: &Answer) -> Option<Footprint> {
    let reach = match reach::read(reached)? {
        Ok(reach) => reach,
        Err(stay) => return Some(Footprint::Stays(stay)),
    };
    if !parsed.is_good() || !plan.is_good() {
        return None;
    }
    let results = backend::column_types(parsed.description.as_deref()?)?;
    let mut types = results.iter().chain(parsed.types.as_deref()?);
    let stays = |stay| Some(Footprint::Stays(stay));
    let own = types.find(|oid| **oid >= FIRST_OF_USERS && !reach.enums.contains(*oid));
    if own.is_some() {
        return stays(Stay::UserType);
    }
    let mut types = results.iter().chain(parsed.types.as_deref()?);
    if types.any(|oid| reach::NAMED.contains(oid)) {
        return stays(Stay::Names);
    }
    let plan = shape::Shape::of(&plan.values.concat());
    match plan {
        Some(plan) if plan.is_whole || plan.is_known && reach.is_safe => Some(Footprint::Travels),
        _ => stays(Stay::Restricted),
    }
}

/// OIDs from here on belong to objects that were made after the cluster was (`transam.h`).
const FIRST_OF_USERS: u32 = 16_384;

/// The whole of the questions about a text without values, which is not prepared for anybody: what
/// the small ones come to is compared with what it comes to.
///
/// What the catalog says is asked first, and alone: planning may run a function of users.
#[derive(Debug)]
pub struct Inquiry {
    text: Vec<u8>,
    mentions: Mentions,
    major: u16,
    answers: Vec<Answer>,
    current: Answer,
}

impl Inquiry {
    /// About a text, before a server of this version.
    ///
    /// # Errors
    /// Why it stays at home, if the text says so.
    pub fn new(text: &[u8], major: u16) -> Result<Self, Stay> {
        Ok(Self {
            text: text.to_vec(),
            mentions: mentions(text)?,
            major,
            answers: Vec::new(),
            current: Answer::default(),
        })
    }

    /// The next messages for the server, and how many times everything up to a ReadyForQuery they
    /// are owed; nothing if the answer is known.
    #[must_use]
    pub fn questions(&self) -> Option<Asked> {
        let mut asks = Asked::default();
        match &self.answers[..] {
            [] => asks.careful(&reach::question(&self.mentions)),
            [reached] if matches!(reach::read(reached), Some(Ok(_))) => {
                put_plan(&mut asks, PROBE, &self.text, &[], self.major);
            }
            _ => return None,
        }
        Some(asks)
    }

    /// Notes one reply; true at a ReadyForQuery.
    pub fn note(&mut self, tag: u8, body: &[u8]) -> bool {
        self.current.note(tag, body, super::answer::MAX_ANSWER);
        let is_last = tag == backend::READY_FOR_QUERY;
        if is_last {
            self.answers.push(std::mem::take(&mut self.current));
        }
        is_last
    }

    /// What the answers come to.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        let empty = Answer::default();
        let found = match &self.answers[..] {
            [reached, parsed, plan, ..] => judge(parsed, plan, reached),
            [reached, ..] => judge(&empty, &empty, reached),
            [] => None,
        };
        found.unwrap_or_default()
    }
}

/// The name under which a text without values is explained.
const PROBE: &[u8] = b"_pgautoprep_travel";

/// Every question with sample values, but for those that hold a text of the client's.
pub(super) fn samples() -> Vec<String> {
    let mentions = sample();
    let mut all = vec![reach::sample(&mentions)];
    all.extend(near::samples(&mentions));
    all
}

/// A few names.
fn sample() -> Mentions {
    Mentions {
        names: vec!["t".to_owned(), "a'b\\".to_owned()],
        calls: vec!["now".to_owned()],
        attributes: vec!["lo_unlink".to_owned()],
        operators: vec!["=".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(root: &str) -> String {
        format!("[{{\"Plan\": {{{root}}}}}]")
    }

    const PROOF: &str = "\"Node Type\": \"Gather\", \"Workers Planned\": 1, \"Single Copy\": true";

    #[test]
    fn no_statement_has_the_name_of_one_that_is_only_explained() {
        // "_1t" would be the name of the statement with the number 1 + 29 * 36.
        assert!(!SUFFIX.is_ascii_alphanumeric());
    }

    #[test]
    fn the_question_is_put_byte_for_byte() {
        let expected = "SET LOCAL plan_cache_mode = force_generic_plan; \
            SET LOCAL force_parallel_mode = on; \
            SET LOCAL max_parallel_workers_per_gather = 2; \
            SET LOCAL parallel_setup_cost = 1e10; \
            EXPLAIN (COSTS OFF, FORMAT JSON) EXECUTE p(NULL,NULL)";
        assert_eq!(String::from_utf8(explain(b"p", 2, 15)).unwrap(), expected);
        let newer = String::from_utf8(explain(b"p", 0, 16)).unwrap();
        assert!(newer.contains("SET LOCAL debug_parallel_query = on;"));
        assert!(newer.ends_with("EXECUTE p"));
    }

    /// Answers that let a statement travel whose result and parameter have these types.
    fn answers(result: u32, parameter: u32) -> [Answer; 3] {
        let mut description = b"\0\x01a\0\0\0\0\0\0\0".to_vec();
        description.extend_from_slice(&result.to_be_bytes());
        description.extend_from_slice(&[0, 4, 0xff, 0xff, 0xff, 0xff, 0, 0]);
        let parsed = Answer {
            description: Some(description),
            types: Some(vec![parameter]),
            ..Answer::default()
        };
        let with = |values: &[&str]| Answer {
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            ..Answer::default()
        };
        let reached = [
            "1", "rp", "0", "0", "0", "0", "0", "0", "", "", "16400", "0", "0",
        ];
        [parsed, with(&[&plan(PROOF)]), with(&reached)]
    }

    #[test]
    fn types_of_users_stay_at_home_but_for_enumerations() {
        let judged = |result, parameter| {
            let [parsed, plan, reached] = answers(result, parameter);
            judge(&parsed, &plan, &reached)
        };
        assert_eq!(judged(23, 25), Some(Footprint::Travels));
        assert_eq!(judged(16_400, 16_400), Some(Footprint::Travels));
        let stays = |stay| Some(Footprint::Stays(stay));
        assert_eq!(judged(16_401, 25), stays(Stay::UserType));
        assert_eq!(judged(23, 16_401), stays(Stay::UserType));
        assert_eq!(judged(2205, 23), stays(Stay::Names));
        assert_eq!(judged(23, 24), stays(Stay::Names));
    }

    #[test]
    fn a_plan_that_no_worker_runs_needs_functions_that_one_could_run() {
        let judged = |is_safe| {
            let [parsed, mut shown, mut reached] = answers(23, 25);
            let nodes = "\"Node Type\": \"WindowAgg\", \"Plans\": [{\"Node Type\": \"Seq Scan\"}]";
            shown.values = vec![plan(nodes)];
            reached.values[11] = is_safe;
            judge(&parsed, &shown, &reached)
        };
        assert_eq!(judged("0".to_owned()), Some(Footprint::Travels));
        let stays = Footprint::Stays(Stay::Restricted);
        assert_eq!(judged("1".to_owned()), Some(stays));
    }

    #[test]
    fn what_was_not_answered_is_not_decided() {
        let failed = || Answer {
            error: Some(Vec::new()),
            ..Answer::default()
        };
        let [parsed, plan, reached] = answers(23, 23);
        assert_eq!(judge(&failed(), &plan, &reached), None);
        assert_eq!(judge(&parsed, &failed(), &reached), None);
        assert_eq!(judge(&parsed, &plan, &failed()), None);
        assert_eq!(judge(&Answer::default(), &plan, &reached), None);
    }

    #[test]
    fn a_text_without_values_is_explained_only_if_the_catalog_lets_it() {
        let mut inquiry = Inquiry::new(b"SELECT a FROM t", 17).unwrap();
        let first = inquiry.questions().unwrap();
        assert_eq!(first.questions, 1);
        assert!(inquiry.note(backend::READY_FOR_QUERY, b"I"));
        assert!(inquiry.questions().is_none(), "nothing was answered");
        assert_eq!(inquiry.footprint(), Footprint::Unasked);
        assert_eq!(Inquiry::new(b"DELETE FROM t", 17).err(), Some(Stay::NoRead));
    }
}
