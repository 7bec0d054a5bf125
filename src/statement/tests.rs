//! Tests of the table and the mirror together: statements made from real texts.

use super::mirror::{Capacity, MemoryChange, Mirror, NAME_PREFIX, Tag};
use super::shapes::Shapes;
use super::{
    Context, Footprint, Key, MAX_VARIANTS, Millis, Plans, Recipe, Statement, Terms, Verdict,
};
use crate::reason::Reason;
use crate::sql::scan::Scan;
use crate::sql::stays::Blame;
use crate::sql::{Dialect, ScanLimits, eligible};
use std::sync::Arc;

const HERE: Context = Context(1);
const DIALECT: Dialect = Dialect { server_major: 17 };

struct World {
    shapes: Shapes,
    scan: Scan,
}

impl World {
    fn new() -> Self {
        Self {
            shapes: Shapes::new(100, 100, 7),
            scan: Scan::new(ScanLimits::default(), 7),
        }
    }

    fn recipe(&mut self, text: &str) -> Arc<Recipe> {
        self.scan.run(text.as_bytes(), DIALECT).expect("scans");
        let recipe = self.shapes.recipe(text.as_bytes(), &self.scan);
        let recipe = recipe.expect("no collision");
        let judged = recipe.judgement(&self.scan, || eligible::examine(text, &self.scan, DIALECT));
        judged.expect("eligible");
        recipe
    }

    fn statement(&mut self, text: &str, context: Context) -> Result<Arc<Statement>, Reason> {
        let recipe = self.recipe(text);
        let eligible = recipe.eligible().expect("judged");
        let text = text.as_bytes();
        self.shapes.statement(
            &recipe,
            eligible,
            (context, Plans::Generic),
            text,
            &self.scan,
        )
    }

    fn many(&mut self, count: usize) -> Vec<Arc<Statement>> {
        (0..count)
            .map(|k| self.statement(&format!("select c{k} from t where a = 1"), HERE))
            .collect::<Result<_, _>>()
            .expect("statements")
    }
}

/// More bytes than the statements of these tests take together.
const MANY: usize = 16 << 20;

fn mirror(statements: usize) -> Mirror {
    let bytes = 2 * MANY;
    Mirror::new(Capacity { statements, bytes }, Tag::random())
}

/// Looks for what is not there until everything that is has been idle for long enough.
fn wait(mirror: &mut Mirror) {
    for _ in 0..100 {
        assert!(mirror.lookup(Key::default()).is_none());
    }
}

/// Makes the entry usable, as ParseComplete and a verdict do.
fn prepare(mirror: &mut Mirror, statement: &Arc<Statement>) -> String {
    let begun = mirror.begin(Arc::clone(statement), &Terms::default(), 0);
    let (name, _) = begun.expect("room");
    mirror.confirm(statement.key(), Millis(0), Arc::default());
    String::from_utf8_lossy(name.as_bytes()).into_owned()
}

#[test]
fn one_shape_is_one_statement_per_context() {
    let mut world = World::new();
    let first = world
        .statement("select a from t where b = 1", HERE)
        .unwrap();
    let again = world
        .statement("select a from t where b = 2", HERE)
        .unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    let elsewhere = world
        .statement("select a from t where b = 1", Context(2))
        .unwrap();
    assert!(!Arc::ptr_eq(&first, &elsewhere));
    assert_eq!(first.text(), b"select a from t where b = $1");
    assert_eq!(first.oids(), [23]);
}

#[test]
fn inline_values_belong_to_the_statement() {
    let mut world = World::new();
    let text = |k| format!("select a, b from t where a = 5 order by {k}");
    let first = world.statement(&text(1), HERE).unwrap();
    let second = world.statement(&text(2), HERE).unwrap();
    assert!(!Arc::ptr_eq(&first, &second));
    let recipe = world.recipe(&text(2));
    assert!(second.is_for(&recipe, HERE, text(2).as_bytes(), &world.scan));
    assert!(!first.is_for(&recipe, HERE, text(2).as_bytes(), &world.scan));
    let all: Vec<_> = (3..40).map(|k| world.statement(&text(k), HERE)).collect();
    let allowed = all.iter().filter(|one| one.is_ok()).count() + 2;
    assert_eq!(allowed, MAX_VARIANTS as usize);
}

#[test]
fn narrowing_keeps_what_has_varied() {
    let mut world = World::new();
    for text in [
        "select a from t where b = 1 and c = 7",
        "select a from t where b = 2 and c = 7",
    ] {
        let recipe = world.recipe(text);
        recipe.sight(text.as_bytes(), &world.scan, world.shapes.hasher());
    }
    let recipe = world.recipe("select a from t where b = 3 and c = 7");
    assert_eq!(recipe.narrowed(&[]), Some(vec![true, false]));
    assert_eq!(recipe.narrowed(&[0]), Some(vec![true, false]));
    assert_eq!(recipe.narrowed(&[1]), None);
    let narrower = world.shapes.narrow(&recipe, vec![true, false]);
    assert!(recipe.is_retired());
    let statement = world
        .statement("select a from t where b = 3 and c = 7", HERE)
        .unwrap();
    assert!(Arc::ptr_eq(statement.recipe(), &narrower));
    assert_eq!(statement.text(), b"select a from t where b = $1 and c = 7");
    assert_eq!(narrower.narrowed(&[]), None);
}

#[test]
fn a_full_table_forgets_and_stays_bounded() {
    let mut world = World::new();
    world.many(1000);
    assert!(world.shapes.len() <= 100, "{}", world.shapes.len());
}

/// The text of a shape of its own with about 12 kB.
fn large(number: usize) -> String {
    let names = format!(", c{number}").repeat(12_000 / 6);
    format!("select a{names} from t where a = 1")
}

#[test]
fn a_table_is_bounded_in_bytes_and_keeps_what_is_used() {
    let mut world = World::new();
    let hot = "select a from t where b = 1";
    let first = world.statement(hot, HERE).unwrap();
    for number in 0..200 {
        first.count_execution();
        drop(world.statement(&large(number), HERE).unwrap());
        // A hundred shapes of 8 KiB, and a last one.
        assert!(world.shapes.bytes() < 900 << 10, "{}", world.shapes.bytes());
    }
    assert!(world.shapes.evictions() > 0 && world.shapes.len() > 10);
    assert!(Arc::ptr_eq(&first, &world.statement(hot, HERE).unwrap()));
}

#[test]
fn what_others_hold_is_counted_and_does_not_stop_the_table() {
    let mut world = World::new();
    let held: Vec<_> = (0..200)
        .map(|number| world.statement(&large(number), HERE).unwrap())
        .collect();
    assert!(world.shapes.bytes() > 200 * 16_000);
    assert!(world.shapes.evictions() < 30, "room is not made each time");
    drop(held);
    drop(world.statement(&large(200), HERE).unwrap());
    assert!(world.shapes.bytes() < 5 << 20);
    world.statement(&large(201), HERE).unwrap();
}

#[test]
fn what_nobody_asks_for_is_given_back_in_time() {
    let mut world = World::new();
    let used = world
        .statement("select a from t where b = 1", HERE)
        .unwrap();
    drop(world.many(20));
    for minute in 0..50 {
        world.shapes.rest(Millis(minute * 60_000));
    }
    assert_eq!(world.shapes.len(), 21);
    used.count_execution();
    for minute in 50..100 {
        world.shapes.rest(Millis(minute * 60_000));
        world.shapes.rest(Millis(minute * 60_000 + 1));
    }
    assert_eq!(world.shapes.len(), 1);
    for minute in 100..120 {
        world.shapes.rest(Millis(minute * 60_000));
    }
    assert!(world.shapes.is_empty() && world.shapes.bytes() > 0, "held");
    drop(used);
    assert_eq!(world.shapes.bytes(), 0);
}

#[test]
fn common_values_count_while_they_are_trusted() {
    let mut world = World::new();
    let statement = world
        .statement("select a from t where b = 1", HERE)
        .unwrap();
    let before = world.shapes.bytes();
    let values: Vec<String> = (0..1000).map(|value| value.to_string()).collect();
    let common = super::common_values::Common::new(0, 23, &values).expect("integers");
    let terms = Arc::new(Terms {
        common: [common].into(),
        ..Terms::default()
    });
    let (epoch, at) = (1, Millis(0));
    let footprint = Footprint::Unasked;
    statement.record(Verdict::Trusted {
        epoch,
        at,
        terms,
        footprint,
    });
    assert!(world.shapes.bytes() > before + 16_000);
    statement.record(Verdict::Unasked);
    assert_eq!(world.shapes.bytes(), before);
}

/// On a machine that is busy any read may keep others waiting once in a while; but of a lock that
/// one waits for, the next is told at once.
#[test]
fn a_read_that_keeps_others_waiting_stays_at_home_unless_that_is_seldom() {
    let mut world = World::new();
    let statement = world.statement("select a from t where b = 1", HERE);
    let statement = statement.expect("a statement");
    statement.record(Verdict::Trusted {
        epoch: 1,
        at: Millis(0),
        terms: Arc::default(),
        footprint: Footprint::Travels,
    });
    let executes = |count: u32| {
        for _ in 0..count {
            statement.count_execution();
        }
    };
    let rests = |at: u64| {
        statement.rests_at_home(Millis(at));
        let rest = (at..at + 100_000).find(|now| statement.travels(Millis(*now)));
        rest.map_or(u64::MAX, |until| until - at)
    };
    executes(100);
    assert_eq!(rests(10), 250);
    assert_eq!(rests(20), 240, "it was sent before");
    assert_eq!(rests(260), 500);
    executes(2_000);
    for at in [1_000, 1_100, 1_200] {
        executes(2_000);
        assert_eq!(rests(at), 0, "it is seldom");
    }
    assert_eq!(rests(1_300), 250, "it is not");
    executes(10);
    assert_eq!(rests(1_600), 500);
}

#[test]
fn verdicts_are_asked_for_once_and_audits_become_rare() {
    let mut world = World::new();
    let statement = world
        .statement("select a from t where b = 1", HERE)
        .unwrap();
    assert!(statement.claim(Millis(0), 100));
    assert!(!statement.claim(Millis(99), 100));
    assert!(statement.claim(Millis(100), 100), "the other has given up");
    let declined = Verdict::Declined {
        reason: Reason::Refused,
        blame: Blame::default(),
        epoch: 3,
    };
    statement.record(declined);
    assert_eq!(statement.settled_against(3), Some(Reason::Refused));
    assert_eq!(statement.settled_against(4), None);
    assert!(statement.is_withdrawn());
    let mut audits = Vec::new();
    for execution in 1..=100 {
        if statement.count_execution() && statement.take_audit(false) {
            audits.push(execution);
        }
    }
    assert_eq!(audits, [5, 20, 80]);
}

#[test]
fn a_cache_never_holds_more_than_it_may_nor_uses_a_name_twice() {
    let statements = World::new().many(20);
    let mut mirror = mirror(4);
    let mut names = std::collections::HashSet::new();
    for statement in &statements {
        wait(&mut mirror);
        let name = prepare(&mut mirror, statement);
        assert!(name.starts_with(NAME_PREFIX));
        assert!(names.insert(name));
        assert!(mirror.len() <= 4);
    }
    assert_eq!(mirror.take_owed().len(), 16);
    assert!(!mirror.owes());
}

#[test]
fn the_least_useful_goes_first() {
    let statements = World::new().many(5);
    let mut mirror = mirror(3);
    for statement in &statements[..3] {
        prepare(&mut mirror, statement);
    }
    let begin = |mirror: &mut Mirror, statement: &Arc<Statement>| {
        let begun = mirror.begin(Arc::clone(statement), &Terms::default(), 0);
        begun.map(|(_, evicted)| evicted)
    };
    assert!(mirror.lookup(statements[0].key()).is_some());
    assert_eq!(begin(&mut mirror, &statements[3]), None, "all are in use");
    wait(&mut mirror);
    assert!(mirror.lookup(statements[2].key()).is_some());
    assert_eq!(begin(&mut mirror, &statements[3]), Some(1));
    // Of the first two, the second was used less often; the third is in use.
    assert!(mirror.lookup(statements[1].key()).is_none());
    assert!(mirror.lookup(statements[0].key()).is_some());
    assert!(
        mirror.lookup(statements[3].key()).is_none(),
        "not settled yet"
    );
}

/// Terms of a statement that takes at least so many bytes.
fn heavy(bytes: usize) -> Arc<Terms> {
    Arc::new(Terms {
        plan_bytes: bytes / 36,
        ..Terms::default()
    })
}

#[test]
fn of_those_used_alike_the_largest_goes_first() {
    let statements = World::new().many(4);
    let capacity = Capacity {
        statements: 10,
        bytes: 1 << 20,
    };
    let mut mirror = Mirror::new(capacity, Tag::random());
    for (statement, bytes) in statements.iter().zip([300 << 10, 500 << 10, 100 << 10]) {
        prepare(&mut mirror, statement);
        mirror.confirm(statement.key(), Millis(0), heavy(bytes));
    }
    let terms = heavy(300 << 10);
    let begin = |mirror: &mut Mirror| {
        let begun = mirror.begin(Arc::clone(&statements[3]), &terms, 0);
        begun.map(|(_, evicted)| evicted)
    };
    assert_eq!(begin(&mut mirror), None, "all are in use");
    wait(&mut mirror);
    assert_eq!(begin(&mut mirror), Some(1));
    assert!(mirror.lookup(statements[1].key()).is_none());
    assert!(mirror.lookup(statements[0].key()).is_some());
    // What turns out to be too large to be held at all is not held.
    let evicted = mirror.confirm(statements[3].key(), Millis(0), heavy(2 << 20));
    assert_eq!(evicted, 1);
    assert!(mirror.lookup(statements[3].key()).is_none());
    assert!(!mirror.has_room(2 << 20), "it never will be");
    assert_eq!(mirror.len(), 2);
}

/// Every operation in any order: the bounds are kept, what the server holds is known, and what was
/// taken and freed is what is there.
#[test]
fn the_bounds_are_kept_whatever_happens() {
    let statements = World::new().many(30);
    let capacity = Capacity {
        statements: 7,
        bytes: 1 << 20,
    };
    let mut mirror = Mirror::new(capacity, Tag::random());
    let mut on_server = std::collections::HashSet::new();
    let (mut tally, mut seed) = (MemoryChange::default(), 1_u64);
    let mut dice = |sides: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % sides
    };
    let mut evictions = 0;
    for _ in 0..20_000 {
        let statement = &statements[dice(30) as usize];
        let bytes = (dice(5) as usize * 90) << 10;
        match dice(40) {
            0..=1 => drop(mirror.remove(statement.key())),
            2 => mirror.flush(),
            3 => {
                mirror.forget_all();
                on_server.clear();
            }
            4..20 => {
                let terms = heavy(bytes);
                let fits = mirror.has_room(statement.memory(&terms));
                let is_new = mirror.lookup(statement.key()).is_none();
                let begun = mirror.begin(Arc::clone(statement), &terms, 0);
                assert!(begun.is_some() || !(fits && is_new));
                if let Some((name, evicted)) = begun {
                    evictions += evicted;
                    for name in mirror.take_owed() {
                        assert!(on_server.remove(name.as_bytes()));
                    }
                    assert!(on_server.insert(name.as_bytes().to_vec()));
                }
            }
            20..26 => {
                evictions += mirror.confirm(statement.key(), Millis(0), heavy(bytes));
            }
            _ => drop(mirror.lookup(statement.key())),
        }
        let now = mirror.take_tally();
        tally.taken += now.taken;
        tally.freed += now.freed;
        assert!(mirror.len() <= 7 && mirror.bytes() <= 1 << 20);
        assert_eq!(mirror.bytes() as u64, tally.taken - tally.freed);
        assert!(!mirror.is_empty() || mirror.bytes() == 0);
        assert!(
            mirror
                .names()
                .all(|name| on_server.contains(name.as_bytes()))
        );
        assert_eq!(on_server.is_empty(), !mirror.is_on_server());
    }
    assert!(evictions > 500, "{evictions}");
}

#[test]
fn what_is_used_is_not_evicted_for_what_might_be() {
    let statements = World::new().many(6);
    let mut mirror = mirror(4);
    for statement in &statements[..4] {
        prepare(&mut mirror, statement);
    }
    // Six statements in turn do not fit into four: the first four keep their place.
    for _ in 0..100 {
        for statement in &statements {
            if mirror.lookup(statement.key()).is_none() {
                assert!(!mirror.has_room(MANY));
            }
        }
    }
    for _ in 0..20 {
        mirror.lookup(statements[4].key());
    }
    assert!(mirror.has_room(MANY), "none of the four is used any more");
}

#[test]
fn nothing_the_server_holds_is_forgotten_unless_it_has_dropped_all() {
    let statements = World::new().many(3);
    let mut mirror = mirror(4);
    statements.iter().for_each(|statement| {
        prepare(&mut mirror, statement);
    });
    mirror.revoke(statements[0].key());
    assert!(!mirror.owes(), "its Parse failed: the server has nothing");
    assert!(mirror.remove(statements[1].key()));
    mirror.flush();
    assert!(mirror.is_empty() && mirror.is_on_server());
    assert_eq!(mirror.take_owed().len(), 2);
    prepare(&mut mirror, &statements[0]);
    mirror.forget_all();
    assert!(!mirror.is_on_server());
}
