//! Definitions that run nothing that their text does not name, and change nothing but objects.
//!
//! Others may build a table anew or look through its rows, and run for that what its generated
//! columns, indexes and checks call. What runs so may change the session's settings.

use super::{OBJECTS, Tokens};

/// Words in an ALTER TABLE that may have the rows of a table written or checked, or make other
/// tables part of it.
const WORKS: [&[u8]; 15] = [
    b"access",
    b"attach",
    b"detach",
    b"expression",
    b"generated",
    b"inherit",
    b"logged",
    b"of",
    b"partition",
    b"tablespace",
    b"type",
    b"unlogged",
    b"using",
    b"validate",
    b"with",
];

/// Whether this is such a definition, of what stands at `about`.
pub(super) fn is(tokens: &Tokens<'_>, about: usize) -> bool {
    let Some((verb, kind)) = tokens.head().zip(tokens.word(about)) else {
        return false;
    };
    match (verb.0, kind) {
        (b"alter", b"sequence") => true,
        (b"alter", b"table") => {
            // A new column's default is written into all rows, unless it is the same for all.
            let writes = tokens.has(b"add") && tokens.has(b"default");
            !writes && !WORKS.iter().any(|word| tokens.has(word))
        }
        (b"alter", kind) if OBJECTS.contains(&kind) => is_renamed_or_given(tokens),
        (
            b"create",
            b"function" | b"policy" | b"procedure" | b"rule" | b"sequence" | b"trigger" | b"view",
        ) => true,
        (b"drop", kind) => OBJECTS.contains(&kind),
        _ => false,
    }
}

/// Whether a clause gives an object another owner or name; what is altered may be called so, too.
fn is_renamed_or_given(tokens: &Tokens<'_>) -> bool {
    let renames: [&[u8]; 5] = [b"attribute", b"column", b"constraint", b"to", b"value"];
    let is_clause = |at: usize| match (tokens.word(at), tokens.word(at + 1)) {
        (Some(b"owner"), Some(behind)) => behind == b"to",
        (Some(b"rename"), Some(behind)) => renames.contains(&behind),
        _ => false,
    };
    (0..tokens.list.len()).any(is_clause)
}

#[cfg(test)]
mod tests {
    use crate::sql::define::Definitions;

    fn reaches_out(text: &str) -> bool {
        Definitions::read(text.as_bytes()).reaches_out
    }

    #[test]
    fn what_runs_only_what_it_names_is_known() {
        for text in [
            "alter table t owner to me",
            "alter table only s.t alter column id set default nextval('s'), alter b set not null",
            "alter table t add constraint c primary key (id)",
            "alter table t add foreign key (a) references u (b) on delete cascade",
            "alter table t add column a int, drop column b cascade",
            "alter table t rename a to b",
            "alter sequence s owned by t.id",
            "alter function f(int) owner to me",
            "alter type c rename attribute a to b",
            "create or replace view v as select 1",
            "create or replace function f() returns int language sql as 'select 1'",
            "create trigger a before insert on t for each row execute function f()",
            "drop view v cascade",
            // What is bounded by names, and no definition.
            "create table t (a int)",
            "create index on t (a)",
            "select 1",
            "alter sequence s restart; alter table t owner to me",
        ] {
            assert!(!reaches_out(text), "{text}");
        }
    }

    #[test]
    fn what_may_run_something_or_change_the_session_reaches_out() {
        for text in [
            "alter table t alter a type text",
            "alter table t add a int default f()",
            "alter table t validate constraint c",
            "alter table t attach partition p default",
            "alter table t inherit u",
            "alter table t set unlogged",
            "alter role r set search_path = a",
            "alter database d set timezone = 'utc'",
            "alter type e add value 'x'",
            "alter type c alter attribute owner type bigint cascade",
            "alter type c alter attribute rename type bigint cascade",
            "create schema s",
            "create extension e",
            "drop owned by r",
            "grant select on all tables in schema s to r",
            "do 'begin end'",
            "alter table t owner to me; do 'begin end'",
        ] {
            assert!(reaches_out(text), "{text}");
        }
    }

    #[test]
    fn one_statement_is_one_whatever_stands_in_it() {
        for text in [
            "select 1",
            "; select ';' ;",
            "create function f() returns int language sql as $$ select 1; select 2; $$;",
        ] {
            assert!(Definitions::is_one(text.as_bytes()), "{text}");
        }
        for text in ["", ";", "select 1; select 2", "select 'a", "begin; ;commit"] {
            assert!(!Definitions::is_one(text.as_bytes()), "{text}");
        }
    }
}
