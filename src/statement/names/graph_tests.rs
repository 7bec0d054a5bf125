//! What uses what, and what follows from it.

use super::*;
use crate::sql::residue::{Compiles, Leaves};
use crate::sql::survey::Known as _;

fn calls<'a>(oid: &'a str, name: &'a str, source: &'a str) -> Row<'a> {
    Row::Function {
        oid,
        name,
        language: "plpgsql",
        volatile: true,
        marks: "v",
        source,
    }
}

#[test]
fn a_long_chain_in_the_worst_order_takes_no_longer_than_a_short_one() {
    const COUNT: usize = 20_000;
    let texts: Vec<[String; 3]> = (0..COUNT)
        .map(|n| {
            let source = format!("begin perform f{}(); end", n + 1);
            [n.to_string(), format!("f{n}"), source]
        })
        .collect();
    let mut rows: Vec<_> = texts.iter().map(|[a, b, c]| calls(a, b, c)).collect();
    let last = format!("f{COUNT}");
    rows.push(calls("x", &last, "begin reset all; end"));
    // Following every edge for each function would take minutes.
    let started = std::time::Instant::now();
    let names = Names::of_rows(&rows);
    assert!(started.elapsed() < std::time::Duration::from_secs(10));
    assert_eq!(names.len(), COUNT + 1);
    assert!(names.of(b"f0").has(Hazards::ANYTHING));
}

#[test]
fn a_body_may_mention_a_name_that_the_server_cuts_off() {
    let cut = "n".repeat(MAX_NAME);
    let source = format!("begin perform {cut}more(); end");
    let names = Names::of_rows(&[
        calls("1", &cut, "begin reset all; end"),
        calls("2", "f", &source),
        calls("3", "g", "begin perform 1; end"),
    ]);
    assert!(names.of(b"f").has(Hazards::ANYTHING));
    assert!(names.of(b"g").is_none());
}

fn plain<'a>(oid: &'a str, name: &'a str, marks: &'a str, source: &'a str) -> Row<'a> {
    Row::Function {
        oid,
        name,
        language: "plpgsql",
        volatile: marks.starts_with('v'),
        marks,
        source,
    }
}

fn fires<'a>(object: &'a str, name: &'a str, on: &'a str, by_writing: bool) -> Row<'a> {
    Row::Depends {
        object,
        name,
        on,
        by_writing,
        inherits: false,
    }
}

/// What a function in PL/pgSQL leaves at least is how it is called in messages.
#[test]
fn an_event_trigger_leaves_what_its_function_does() {
    use residue::Remains as _;
    let function = plain("1", "f", "v", "begin perform 1; end");
    assert!(!Names::of_rows(std::slice::from_ref(&function)).fires());
    assert!(Names::of_rows(&[function, fires("e", "", "f1", false)]).fires());
    assert!(Names::unknown().fires());
}

#[test]
fn a_function_leaves_what_it_calls_and_what_it_writes_to_leaves() {
    use residue::Remains as _;
    let names = Names::of_rows(&[
        plain("1", "even", "v", "begin return odd(n - 1); end"),
        plain("2", "odd", "v", "begin return even(n - 1); end"),
        plain("3", "opens", "v", "begin open c for select a; end"),
        plain("4", "calls", "v", "begin return opens(); end"),
        plain("5", "reads", "v", "begin return (select a from fired); end"),
        plain(
            "6",
            "writes",
            "v",
            "begin insert into fired values (a); end",
        ),
        plain(
            "7",
            "fires",
            "v",
            "begin insert into log values (a); return new; end",
        ),
        plain("8", "strange", "v", "begin return lo_import(a); end"),
        plain("9", "marked", "v!", "begin return a; end"),
        plain("10", "lower", "v", "begin return a; end"),
        plain("11", "uses_lower", "v", "begin return lower(a); end"),
        plain("12", "uses_taken", "v", "begin return taken(a); end"),
        plain("13", "taken", "v", "begin return a; end"),
        plain("14", "declares", "v", "declare x text; begin return x; end"),
        plain("15", "parsed", "v", ""),
        fires("r1", "fired", "f3", true),
        fires("r2", "quiet", "f7", true),
        fires("r3", "overlooked", "f5", false),
        Row::Taken {
            name: "taken",
            is_type: false,
        },
        Row::Taken {
            name: "text",
            is_type: true,
        },
    ]);
    for name in ["even", "ODD", "reads", "fires", "lower", "uses_lower"] {
        assert_eq!(names.leaves(name.as_bytes()), Leaves::Nothing, "{name}");
        assert!(names.is_harmless(name.as_bytes()), "{name}");
    }
    let leaving = [
        "opens",
        "calls",
        "writes",
        "strange",
        "marked",
        "uses_taken",
        "declares",
    ];
    for name in leaving.into_iter().chain(["parsed"]) {
        assert_eq!(names.leaves(name.as_bytes()), Leaves::Always, "{name}");
        assert!(!names.is_harmless(name.as_bytes()), "{name}");
    }
    assert_eq!(names.leaves(b"fired"), Leaves::WhenWritten);
    assert_eq!(names.leaves(b"quiet"), Leaves::Nothing);
    assert_eq!(names.leaves(b"overlooked"), Leaves::Nothing);
    assert!(!names.is_harmless(b"taken") && !names.is_harmless(b"quiet"));
    assert!(!names.is_harmless(b"abs") && !names.is_harmless(&[b'x'; 100]));
    assert!(names.has_bodies() && !Names::of_rows(&[]).has_bodies());
}

#[test]
fn who_reads_a_table_does_not_run_its_triggers() {
    use residue::Remains as _;
    let names = Names::of_rows(&[
        plain("1", "trigger", "v", "begin return new; end"),
        plain("2", "writer", "v", "begin delete from watched; end"),
        fires("r1", "watched", "f1", true),
        fires("r2", "viewed", "r1", false),
        fires("r3", "calling", "f1", false),
        fires("r4", "referring", "r1", true),
    ]);
    for name in [&b"watched"[..], b"viewed", b"referring"] {
        assert_eq!(names.compiles(name), Compiles::WhenWritten);
    }
    for name in [&b"trigger"[..], b"writer", b"calling"] {
        assert_eq!(names.compiles(name), Compiles::Always);
    }
    assert_eq!(names.compiles(b"other"), Compiles::Nothing);
    assert_eq!(Names::unknown().compiles(b"other"), Compiles::Always);
}

#[test]
fn what_the_server_computes_beforehand_is_kept_in_bodies() {
    use residue::Remains as _;
    let names = Names::of_rows(&[
        plain("1", "constant", "i", "begin return current_setting(a); end"),
        plain("2", "calls", "s", "begin return constant(); end"),
        plain("3", "views", "s", "begin return (select a from v); end"),
        fires("r1", "v", "f1", false),
    ]);
    assert_eq!(names.leaves(b"constant"), Leaves::InBodies);
    assert_eq!(names.leaves(b"v"), Leaves::InBodies);
    assert!(names.is_harmless(b"constant"), "a text is planned anew");
    for name in [&b"calls"[..], b"views"] {
        assert_eq!(names.leaves(name), Leaves::Always);
    }
    let operator = |marks| {
        let names = Names::of_rows(&[
            plain("1", "plus", marks, "begin return a; end"),
            plain("2", "adds", "v", "begin return a + b; end"),
            fires("*", "", "f1", false),
        ]);
        (names.leaves(b"adds"), names.leaves(b"other"))
    };
    assert_eq!(operator("s"), (Leaves::Nothing, Leaves::Nothing));
    assert_eq!(operator("i"), (Leaves::Always, Leaves::Always));
}

#[test]
fn what_draws_when_it_is_written_is_told_from_the_rest() {
    use residue::Remains as _;
    let uses = |object, name| Row::Uses {
        object,
        name,
        builtin: "nextval",
    };
    let depends = |object, name, by_writing, inherits| Row::Depends {
        object,
        name,
        on: "r1",
        by_writing,
        inherits,
    };
    let rows = [
        uses("r1", "counted"),
        Row::Relation {
            object: "r2",
            name: "made",
            kind: "q",
        },
        plain("1", "notes", "v", "begin insert into log values (1); end"),
        plain("2", "stamps", "v", "begin new.a := 1; return new; end"),
        fires("r3", "noted", "f1", true),
        fires("r4", "stamped", "f2", true),
        depends("r5", "cascades", true, false),
        depends("r6", "over", false, false),
        depends("r7", "parent", false, true),
        fires("r8", "above", "r3", false),
        fires("r9", "plain", "r99", true),
    ];
    let names = Names::of_rows(&rows);
    for name in [
        "counted", "made", "NOTED", "cascades", "over", "parent", "above",
    ] {
        assert!(names.draws(name.as_bytes()), "{name}");
        assert_eq!(names.leaves(name.as_bytes()), Leaves::Nothing, "{name}");
    }
    for name in ["stamped", "plain", "other"] {
        assert!(!names.draws(name.as_bytes()), "{name}");
    }
    assert!(names.of(b"counted").is_none(), "it concerns only sessions");
    assert!(names.draws(&[b'x'; MAX_NAME + 1]), "it may be any of them");
    // A domain's default is that of any column.
    let names = Names::of_rows(&[uses("*", "")]);
    assert!(names.draws(b"plain"));
    assert!(Names::unknown().draws(b"plain"));
}
