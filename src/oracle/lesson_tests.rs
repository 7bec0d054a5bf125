//! Whole lessons as scripts, without sockets: what is asked, what is answered, where it leads.

use super::*;
use crate::convert::{Limits, Policy, Settings, Strictness};
use crate::metrics::{Counter, Metrics};
use crate::sql::hazard::Hazards;
use crate::sql::survey::Known as _;
use crate::statement::context::Origin;
use crate::statement::database::Sight;
use crate::statement::mirror::Capacity;
use crate::statement::shapes::Shapes;
use crate::statement::{Plans, Statement, Verdict};
use crate::wire::frame::{self, HEADER};
use crate::wire::{backend, frontend};
use std::sync::Arc;

#[path = "lesson_chosen_tests.rs"]
mod choice;
#[path = "lesson_context_tests.rs"]
mod contexts;
#[path = "lesson_end_tests.rs"]
mod ends;
#[path = "lesson_facts_tests.rs"]
mod facts;
#[path = "lesson_glance_tests.rs"]
mod glances;
#[path = "lesson_travel_tests.rs"]
mod travels;

/// What comes behind the settings in the answer about the context: memory, schemas that the role
/// may use only because of what it is, who it is.
const WHO: [&str; 7] = ["1048576", "0 70", "7", "1763880000.5", "0", "0", "who"];

const SELECT: &str = "SELECT name FROM t WHERE id = 42";

/// The replies to one question but for ReadyForQuery.
type Replies = Vec<Vec<u8>>;

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len() + 4).unwrap();
    [&[tag], &size.to_be_bytes()[..], body].concat()
}

fn row(columns: &[&str]) -> Vec<u8> {
    let mut body = u16::try_from(columns.len()).unwrap().to_be_bytes().to_vec();
    for column in columns {
        body.extend(u32::try_from(column.len()).unwrap().to_be_bytes());
        body.extend_from_slice(column.as_bytes());
    }
    message(backend::DATA_ROW, &body)
}

fn rows(rows: &[&[&str]]) -> Replies {
    rows.iter().map(|columns| row(columns)).collect()
}

fn error(state: &str, text: &str) -> Vec<u8> {
    let body = format!("SERROR\0VERROR\0C{state}\0M{text}\0\0");
    message(backend::ERROR, body.as_bytes())
}

/// The answer to a Parse of a text with this result and parameters of these types.
fn parsed(result: &[u8], types: &[u32]) -> Replies {
    let mut body = u16::try_from(types.len()).unwrap().to_be_bytes().to_vec();
    body.extend(types.iter().flat_map(|oid| oid.to_be_bytes()));
    vec![
        message(backend::PARSE_COMPLETE, b""),
        message(backend::PARAMETER_DESCRIPTION, &body),
        message(backend::ROW_DESCRIPTION, result),
    ]
}

/// The answer to EXPLAIN: one node of this kind that shows this expression.
fn plan(kind: &str, output: &str) -> Replies {
    let plan = format!(r#"[{{"Plan": {{"Node Type": "{kind}", "Output": ["{output}"]}}}}]"#);
    rows(&[&[&plan]])
}

fn context(who: [&str; 7]) -> Replies {
    let settings = [
        ("array_nulls", "on"),
        ("client_min_messages", "notice"),
        ("exit_on_error", "off"),
        ("log_parameter_max_length_on_error", "0"),
        ("plan_cache_mode", "auto"),
    ];
    let settings = settings.map(|(name, value)| row(&[name, value, "why"]));
    [&settings[..], &[row(&who)]].concat()
}

/// A session, what it is lent, and the questions that its lesson has put last.
struct Room {
    standing: Standing,
    lent: Lent,
    metrics: Arc<Metrics>,
    now: Millis,
    is_pointless: bool,
    asks: Asked,
}

impl Room {
    /// A look has found the catalog changed.
    pub(super) fn changed_past_the_proxy(&self) {
        let database = &self.standing.database;
        let sight = Sight {
            sign: ["sign", "changed"].map(str::to_owned),
            rights: String::new(),
            last: 1,
            reading: None,
            horizon: None,
            without: None,
            made: database.made(),
        };
        database.observed(sight, self.now, self.now, false);
    }

    /// A session that has just logged in.
    fn new() -> Self {
        let settings = Settings {
            mode: Policy::Convert,
            strictness: Strictness::Proven,
            prepare_threshold: 1,
            statement_max_age: 1_000_000,
            catalog_watch: 1_000,
            ddl_notices: false,
            audit: true,
            deferred_begin: false,
            trials: false,
            proves_reads: false,
            shares: false,
            looses: false,
            warm: false,
            limits: Limits {
                max_query: 10_000,
                max_literals: 100,
                min_array_rows: 2,
                statements: Capacity {
                    statements: 10,
                    bytes: 16 << 20,
                },
            },
        };
        let (shapes, metrics) = (
            Arc::new(Shapes::new(100, 100, 1)),
            Arc::new(Metrics::new(1)),
        );
        let lent = Lent::new(settings, shapes, Arc::clone(&metrics), 0, 1);
        Self {
            standing: standing(&lent),
            lent,
            metrics,
            now: Millis(10),
            is_pointless: false,
            asks: Asked::default(),
        }
    }

    /// One whose catalog, names and context are known.
    fn settled() -> Self {
        Self::settled_as(WHO)
    }

    fn settled_as(who: [&str; 7]) -> Self {
        let mut room = Self::new();
        room.settle(who);
        room
    }

    fn settle(&mut self, who: [&str; 7]) {
        let mut lesson = Lesson::behind(Subject::Watch, Vec::new());
        let mut next = self.begin(&mut lesson);
        while next == Next::Asked {
            let answer = match &*self.questions()[0] {
                question if question.contains("concat_ws('|'") => {
                    rows(&[&["sign", "rest", "", "1"]])
                }
                question if question.contains("SHOW ALL") => context(who),
                _ => Vec::new(),
            };
            next = self.answer(&mut lesson, &[answer]);
        }
        assert_eq!(next, Next::Learned);
        // Nobody has to look again for a second.
        self.standing.database.take_watch(self.now, 1_000);
    }

    /// Another session with the same database, whose context is known.
    fn another(self) -> Self {
        self.another_as(WHO)
    }

    fn another_as(self, who: [&str; 7]) -> Self {
        let mut room = Self {
            standing: standing(&self.lent),
            ..self
        };
        room.settle(who);
        room
    }

    fn step<T>(&mut self, take: impl FnOnce(&mut Env<'_>) -> T) -> T {
        take(&mut Env {
            standing: &mut self.standing,
            lent: &mut self.lent,
            now: self.now,
            asks: &mut self.asks,
            is_pointless: self.is_pointless,
            client: 1,
        })
    }

    fn begin(&mut self, lesson: &mut Lesson) -> Next {
        self.asks = Asked::default();
        self.step(|env| lesson.begin(env))
    }

    /// A lesson about the text with generic plans, which must ask something.
    fn teach(&mut self, text: &str) -> Lesson {
        let subject = Subject::Statement(Plans::Generic);
        let mut lesson = Lesson::new(subject, text.as_bytes().to_vec());
        assert_eq!(self.begin(&mut lesson), Next::Asked);
        lesson
    }

    /// Answers all questions; nothing may become of it before the last reply.
    fn answer(&mut self, lesson: &mut Lesson, answers: &[Replies]) -> Next {
        assert_eq!(answers.len(), self.asks.questions);
        self.asks = Asked::default();
        let mut next = None;
        for replies in answers {
            for reply in replies {
                assert_eq!(self.step(|env| lesson.reply(reply[0], reply, env)), None);
            }
            assert_eq!(next, None);
            let ready = message(backend::READY_FOR_QUERY, b"I");
            next = self.step(|env| lesson.reply(backend::READY_FOR_QUERY, &ready, env));
        }
        next.expect("a step that ends")
    }

    /// What was asked last: the texts of Query, and of Parse behind a name. What makes the latter
    /// careful is left out.
    fn questions(&self) -> Vec<String> {
        let (mut all, mut bytes) = (Vec::new(), &*self.asks.bytes);
        while let Ok(Some(header)) = frame::header(bytes) {
            let (frame, rest) = bytes.split_at(header.size);
            bytes = rest;
            let body = &frame[HEADER..];
            let text = match header.tag {
                frontend::QUERY => frame::query_text(body).unwrap().to_vec(),
                frontend::PARSE => {
                    let (name, rest) = frame::cstr(body).unwrap();
                    let (text, _) = frame::cstr(rest).unwrap();
                    let name: &[u8] = if name.is_empty() { b"" } else { b"named " };
                    [name, text].concat()
                }
                _ => continue,
            };
            all.push(String::from_utf8(text).unwrap());
        }
        all.retain(|text| !text.as_bytes().starts_with(question::CAREFUL_SET));
        all
    }

    /// The statement that a text is looked up as by now.
    fn statement(&mut self, text: &str, plans: Plans) -> Arc<Statement> {
        let text = text.as_bytes();
        let recipe = self.lent.recipe_of(text, &self.standing).unwrap();
        self.lent
            .statement(&recipe, plans, text, &self.standing)
            .unwrap()
    }

    fn verdict(&mut self, text: &str) -> Verdict {
        self.statement(text, Plans::Generic).verdict()
    }

    fn is_ready(&mut self, statement: &Statement) -> bool {
        self.standing.mirror.lookup(statement.key()).is_some()
    }

    fn count(&self, counter: Counter) -> u64 {
        self.metrics.summary().count(counter)
    }
}

fn standing(lent: &Lent) -> Standing {
    let mut standing = Standing::new(
        Origin::new(1, b"db", b"me"),
        lent.settings.limits.statements,
        lent.shapes.tag(),
    );
    standing.database = lent.shapes.database(1, b"db");
    standing.process = Some(7);
    for (name, value) in [
        ("server_version", "17.1"),
        ("standard_conforming_strings", "on"),
        ("client_encoding", "UTF8"),
        ("server_encoding", "UTF8"),
    ] {
        standing.parameter(name.as_bytes(), value.as_bytes());
    }
    standing
}

/// Both texts of a statement with one argument of `int4` are parsed alike.
fn both_parsed() -> [Replies; 2] {
    [parsed(b"name", &[]), parsed(b"name", &[23])]
}

/// The plans of a statement whose generic plan is the literal's.
fn alike() -> [Replies; 3] {
    let literal = plan("Result", "42");
    [literal.clone(), literal, plan("Result", "$1")]
}

#[test]
fn a_statement_with_one_plan_for_all_values_is_trusted_after_two_steps() {
    let mut room = Room::settled();
    let mut lesson = room.teach(SELECT);
    let texts = [SELECT, "named SELECT name FROM t WHERE id = $1"];
    assert_eq!(room.questions(), texts);
    assert_eq!(room.asks.closes, 0);
    assert!(matches!(room.verdict(SELECT), Verdict::Asking(_)));
    assert_eq!(room.answer(&mut lesson, &both_parsed()), Next::Asked);
    let asked = room.questions();
    let [original, custom, generic] = &asked[..] else {
        panic!("{asked:?}");
    };
    assert!(original.ends_with(&format!("FORMAT JSON) {SELECT}")));
    assert!(custom.contains("EXECUTE _pgautoprep_") && custom.ends_with("(42)"));
    assert!(generic.contains("force_generic_plan; EXPLAIN"));
    assert_eq!(room.answer(&mut lesson, &alike()), Next::Learned);
    assert!(room.asks.bytes.is_empty());
    let statement = room.statement(SELECT, Plans::Generic);
    assert!(matches!(statement.verdict(), Verdict::Trusted { .. }));
    assert!(room.is_ready(&statement));
    assert_eq!(room.count(Counter::OracleQuestions), 1);
    assert_eq!(room.count(Counter::OracleAccepted), 1);
}

#[test]
fn a_trusted_statement_is_only_parsed_elsewhere_and_must_infer_the_same() {
    let mut room = Room::settled();
    let mut lesson = room.teach(SELECT);
    room.answer(&mut lesson, &both_parsed());
    room.answer(&mut lesson, &alike());
    for (types, next) in [(23, Next::Learned), (20, Next::Over(Reason::Refused))] {
        room = room.another();
        let mut lesson = room.teach(SELECT);
        assert_eq!(room.questions().len(), 1);
        let answer = parsed(b"name", &[types]);
        assert_eq!(room.answer(&mut lesson, &[answer]), next);
        let statement = room.statement(SELECT, Plans::Generic);
        assert_eq!(room.is_ready(&statement), next == Next::Learned);
    }
    assert_eq!(room.verdict(SELECT), Verdict::Unasked);
    assert!(room.standing.mirror.owes());
    assert_eq!(room.count(Counter::OracleQuestions), 1);
}

#[test]
fn other_columns_decline_a_statement_until_the_catalog_changes() {
    let mut room = Room::settled();
    let mut lesson = room.teach(SELECT);
    let answers = [parsed(b"name", &[]), parsed(b"other", &[23])];
    let declined = Next::Over(Reason::DifferentResult);
    assert_eq!(room.answer(&mut lesson, &answers), declined);
    assert!(room.standing.mirror.is_empty() && room.standing.mirror.owes());
    assert_eq!(room.count(Counter::OracleDeclined), 1);
    let subject = || Subject::Statement(Plans::Generic);
    let mut lesson = Lesson::new(subject(), SELECT.as_bytes().to_vec());
    assert_eq!(room.begin(&mut lesson), declined, "without a question");
    assert!(room.asks.bytes.is_empty());
    room.changed_past_the_proxy();
    let mut lesson = Lesson::new(subject(), SELECT.as_bytes().to_vec());
    assert_eq!(room.begin(&mut lesson), Next::Asked);
}

#[test]
fn an_argument_that_an_error_names_stays_inline() {
    let mut room = Room::settled();
    let text = "SELECT name FROM t WHERE id = 42 AND a = 'x'";
    let mut lesson = room.teach(text);
    let message = "could not determine data type of parameter $2";
    let answers = [parsed(b"name", &[]), vec![error("42P18", message)]];
    assert_eq!(room.answer(&mut lesson, &answers), Next::Asked);
    let narrower = "named SELECT name FROM t WHERE id = $1 AND a = 'x'";
    assert_eq!(room.questions(), [text, narrower]);
    assert_eq!(room.asks.closes, 0, "the server holds nothing");
    assert_eq!(room.answer(&mut lesson, &both_parsed()), Next::Asked);
    assert_eq!(room.answer(&mut lesson, &alike()), Next::Learned);
    assert_eq!(room.count(Counter::Demotions), 1);
    assert_eq!(room.count(Counter::OracleQuestions), 1, "one shape");
}

#[test]
fn another_generic_plan_leads_to_custom_plans() {
    let mut room = Room::settled();
    let mut lesson = room.teach(SELECT);
    room.answer(&mut lesson, &both_parsed());
    let [original, custom, _] = alike();
    let answers = [original.clone(), custom, plan("Seq Scan", "$1")];
    assert_eq!(room.answer(&mut lesson, &answers), Next::Asked);
    assert_eq!((room.asks.closes, room.questions().len()), (1, 2));
    assert_eq!(room.asks.bytes[0], frontend::CLOSE);
    assert_eq!(room.answer(&mut lesson, &both_parsed()), Next::Asked);
    assert_eq!(room.questions().len(), 2, "no generic plan");
    let answers = [original.clone(), original];
    assert_eq!(room.answer(&mut lesson, &answers), Next::Learned);
    let statement = room.statement(SELECT, Plans::Generic);
    assert_eq!(statement.plans(), Plans::Custom);
    assert!(room.is_ready(&statement));
    assert_eq!(room.count(Counter::StatementsClosed), 1);
}

#[test]
fn answers_are_told_apart_by_what_was_asked() {
    for (answer, next) in [("0", Next::Learned), ("1", Next::Over(Reason::RoleRights))] {
        let mut room = Room::settled_as(["1048576", "1 70", "7", "", "", "", "who"]);
        let text = "UPDATE t SET name = 42";
        let mut lesson = room.teach(text);
        room.answer(&mut lesson, &both_parsed());
        let asked = room.questions();
        assert_eq!(asked.len(), 5, "{asked:?}");
        assert!(asked[3].contains("has_schema_privilege"), "{asked:?}");
        assert!(asked[4].contains("pg_rewrite"), "{asked:?}");
        let rights = rows(&[&[answer]]);
        let catalog = rows(&[&["", "0", "0", "0", "0"], &["name", "integer"]]);
        let answers = [&alike()[..], &[rights, catalog]].concat();
        assert_eq!(room.answer(&mut lesson, &answers), next);
    }
}

#[test]
fn rows_are_asked_for_their_columns_first() {
    let text = "INSERT INTO t VALUES (1, 'a'), (2, 'b')";
    let column = |oid, array| rows(&[&["id", "23", "1007", "b"], &["name", oid, array, "b"]]);
    let mut room = Room::settled();
    let mut lesson = room.teach(text);
    assert!(room.questions()[0].contains("typarray"));
    assert_eq!(
        room.answer(&mut lesson, &[column("25", "1009")]),
        Next::Asked
    );
    assert!(room.questions()[1].contains("unnest($1"));
    assert_eq!(room.count(Counter::Demotions), 0);

    let mut room = Room::settled();
    let mut lesson = room.teach(text);
    assert_eq!(
        room.answer(&mut lesson, &[column("16400", "0")]),
        Next::Asked
    );
    assert!(!room.questions()[1].contains("unnest"), "taken apart");
    assert_eq!(room.count(Counter::Demotions), 1);
}

#[test]
fn a_watch_that_finds_another_catalog_moves_the_epoch() {
    for (sign, moves) in [("rest", false), ("other", true)] {
        let mut room = Room::settled();
        let epoch = room.standing.database.epoch();
        room.now = Millis(2_000);
        let mut lesson = Lesson::new(Subject::Watch, Vec::new());
        assert_eq!(room.begin(&mut lesson), Next::Asked);
        let answer = rows(&[&["sign", sign, "", "1"]]);
        assert_eq!(room.answer(&mut lesson, &[answer]), Next::Learned);
        assert_eq!(room.standing.database.epoch() > epoch, moves);
    }
}

#[test]
fn names_that_are_too_many_to_be_read_are_all_hazardous() {
    let mut room = Room::new();
    let mut lesson = room.teach(SELECT);
    let sign = rows(&[&["sign", "rest", "", "1"]]);
    assert_eq!(room.answer(&mut lesson, &[sign]), Next::Asked);
    let kinds = rows(&[&["t", "t"]]);
    assert_eq!(room.answer(&mut lesson, &[kinds]), Next::Asked);
    assert!(room.questions()[0].contains("p.prorettype"));
    lesson.large(backend::DATA_ROW);
    assert_eq!(room.answer(&mut lesson, &[Vec::new()]), Next::Asked);
    assert_eq!(room.standing.names().of(b"t"), Hazards::ALL);
    let over = Next::Over(Reason::Introspection);
    assert_eq!(room.answer(&mut lesson, &[context(WHO)]), over);
}
