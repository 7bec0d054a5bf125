//! What is left by each kind of body.

use super::*;

fn plpgsql(source: &str) -> Option<Deeds> {
    deeds(source.as_bytes(), false)
}

fn sql(source: &str) -> Option<Deeds> {
    deeds(source.as_bytes(), true)
}

fn names(names: &[Box<[u8]>]) -> Vec<String> {
    let texts = names.iter().map(|name| String::from_utf8_lossy(name));
    texts.map(std::borrow::Cow::into_owned).collect()
}

#[test]
fn what_computes_reads_and_writes_leaves_nothing_by_itself() {
    for source in [
        "begin return new; end",
        "BEGIN IF TG_OP = 'INSERT' THEN NEW.v = to_tsvector(REPLACE(NEW.t,'/',' ')); \
         ELSIF NEW.t != OLD.t THEN NEW.v := to_tsvector(NEW.t); END IF; RETURN NEW; END;",
        "begin new.changed := now(); return new; end",
        "begin new.changed = null; new.a := null; new.b[1] := 2; return new; end",
        "begin insert into log (op, old) values (tg_op, old.*) on conflict (op) do nothing; \
         return null; end;",
        "begin update t set a = null, b = a + 1 where id = new.id and (c is null); \
         return new; end",
        "begin with x as (delete from t where a = 5 returning b) select count(*) into n from x; \
         return n; end",
        "declare n int; m numeric(10, 2) not null default 0; a text[] := array['x']; \
         d double precision; x alias for $1; begin select 1 into strict n; return n; end",
        "<<outer>> declare n int = null; begin <<l>> for i in reverse 10..1 by 2 loop \
         n := n + i; continue l when n > 5; exit; end loop; return n; end",
        "begin foreach x in array xs loop if (x > 0) then return next (x); end if; end loop; \
         while (n > 0) loop n := n - 1; end loop; end",
        "begin case a when 1 then b := 2; else b := 3; end case; \
         c := case when a then b else null end; return (c); end",
        "begin raise notice 'at 12:00 %, null', a; raise exception 'x' using errcode = '22012', \
         hint = 'today'; exception when unique_violation or sqlstate '23505' then null; \
         when others then get stacked diagnostics a = message_text; raise; end",
        "begin perform nextval('s'); assert a > 0, 'b'; return null; end",
        "begin begin delete from t; exception when others then null; end; return 1; end",
        "begin if exists (select from t where a = 'x' for update) then return; end if; end",
        "begin perform pg_notify('channel', new.a); return new; end",
        "/* set x */ begin -- reset\n return; end",
    ] {
        assert!(plpgsql(source).is_some(), "{source}");
    }
    for source in [
        "select to_timestamp($1) as result",
        " SELECT CAST(EXTRACT(EPOCH FROM $1) AS bigint) AS result; ",
        "insert into t (a) select b from u; update t set a = 1; values (2)",
        "with x as (insert into t values (1) returning a) select a from x",
        "(select 1) union (select 2)",
        "with recursive x (a) as (values (1)) select * from x as y (b)",
        "select case when a then b else c end from t where b = 'O''Neil'",
    ] {
        assert!(sql(source).is_some(), "{source}");
    }
}

#[test]
fn other_statements_may_leave_anything() {
    for source in [
        "begin set search_path = a; end",
        "begin set local work_mem = '1MB'; end",
        "begin reset all; end",
        "begin listen a; end",
        "begin notify a; end",
        "begin if a then notify a; end if; end",
        "begin if a then lock t; else return; end if; end",
        "begin <<l>> lock t; end",
        "begin loop checkpoint; end loop; end",
        "begin lock t; end",
        "begin x[i(1)] := 2; end",
        "begin commit; end",
        "begin call p(); end",
        "begin copy t to '/tmp/x'; end",
        "begin discard all; end",
        "begin truncate t; end",
        "begin prepare p as select a; end",
        "begin fictitious t; end",
        "begin do 'x'; end",
        "begin execute a; end",
        "begin return query execute a; open c; end",
        "begin open c for select a; return c; end",
        "declare c cursor for select a; begin return; end",
        "declare c refcursor; begin return c; end",
        "begin for r in select a from t loop return next r; end loop; end",
        "begin for r in (select a from t) loop null; end loop; end",
        "begin for r in execute a loop null; end loop; end",
        "begin fetch c into a; end",
        "#variable_conflict use_column begin return; end",
        "notify a",
        "begin x := (case when a then declare end); notify text; end",
        "begin if a.then notify b; end if; end",
        "begin perform setseed(a); end",
        "begin perform pg_advisory_lock(a); end",
        "begin perform \"pg_advisory_lock\"(a); end",
        "begin return 'a",
        "begin return U&\"a\"; end",
    ] {
        assert_eq!(plpgsql(source), None, "{source}");
    }
    for source in [
        "notify a",
        "select 1; lock t",
        "table t",
        "set x = 1",
        "begin",
        "'a'",
    ] {
        assert_eq!(sql(source), None, "{source}");
    }
}

/// The server has a type's number as soon as it has met its name, whatever the path is later.
#[test]
fn types_of_variables_are_the_servers_own() {
    for source in [
        "declare x mood; begin return; end",
        "declare x t.a%type; begin return; end",
        "declare x t%rowtype; begin return; end",
        "declare x s.text; begin return; end",
        "declare x \"text\"; begin return; end",
        "declare x text collate c; begin return; end",
        "declare x int; y mood[]; begin return; end",
        "begin declare x mood; begin return; end; end",
        "begin <<l>> declare x mood; begin return; end; end",
    ] {
        assert_eq!(plpgsql(source), None, "{source}");
    }
    let uses = plpgsql("declare a Text; b numeric(3)[]; begin declare c uuid; begin end; end");
    assert_eq!(names(&uses.unwrap().types), ["text", "numeric", "uuid"]);
}

/// The server keeps a constant as it was read first.
#[test]
fn constants_mean_the_same_at_any_time_and_with_all_settings() {
    for value in [
        "'now'",
        "' Today '",
        "'{yesterday}'",
        "'[tomorrow,)'",
        "'no'\n'w'",
        "'1/2/2020'",
        "E'no\\w'",
        "'no\\w'",
        "'{NULL}'",
        "$a$now$a$",
        "bytea 'a'",
        "'a'::bytea::text",
        "1.5::float8::text",
        "\"float8\" '-'",
        "xml 'a'",
        "sqrt(2)",
        "'x' || pi()",
        "length(exp(2::int)::text)",
        "power(2, (3))::text",
        "\"pi\"()",
        "cbrt(case when true then 2 end)",
        "decode('ab', 'hex')::text",
        "sha256(convert_to('a', 'utf'))",
        "''::tsquery",
        "plainto_tsquery('english', 'the')",
        "to_tsvector('english', repeat('x', 3000))",
        "2 ^ 70",
        "2::numeric::int ^ 70",
        "|/ 2",
        "timestamp 'epoch' at time zone 'EST'",
        "timezone('ist', a)",
        "null = a",
        "(null) = a",
        "a = null",
        "a = (null)",
        "f(b, a = null)",
        "(a = null)",
    ] {
        let source = format!("begin b := {value}; end");
        assert_eq!(plpgsql(&source), None, "{source}");
        let source = format!("begin insert into t values ({value}); end");
        assert_eq!(plpgsql(&source), None, "{source}");
        assert_eq!(sql(&format!("select {value}")), None, "{value}");
    }
    for source in [
        "begin raise notice '%', 'now'::timestamp; end",
        "begin raise exception 'x' using message = '1/2/2020'::date; end",
        "begin a := b; message = '12:00'; end",
        "begin if a = null then return; end if; end",
        "begin update t set b = (a = null); end",
        "declare x bool := a = null; begin end",
    ] {
        assert_eq!(plpgsql(source), None, "{source}");
    }
}

/// The server says once that it cuts off a name, or takes away from a precision.
#[test]
fn what_is_said_when_a_body_is_parsed_is_not_said_again() {
    let long = "n".repeat(64);
    assert_eq!(plpgsql(&format!("begin return {long}; end")), None);
    assert_eq!(sql(&format!("select \"{long}\" from t")), None);
    for source in [
        "begin return a::timestamp(9); end",
        "begin return current_time (9); end",
        "declare x interval(9); begin end",
        "declare x timestamp(9) with time zone; begin end",
        "begin return localtime(60); end",
        "begin return localtimestamp(7); end",
    ] {
        assert_eq!(plpgsql(source), None, "{source}");
    }
    for source in [
        "begin new.u := localtimestamp(0); return new; end",
        "declare x timestamp ( 6 ) with time zone; begin end",
    ] {
        assert!(plpgsql(source).is_some(), "{source}");
    }
}

/// What was a field of one type when it was first looked at is taken for one of that type.
#[test]
fn no_variable_is_a_record() {
    for source in [
        "declare r record; begin select x into r from t; return r.x; end",
        "declare a int; r RECORD := row(1); begin return r.f1; end",
        "declare r record[]; begin return 1; end",
    ] {
        assert_eq!(plpgsql(source), None, "{source}");
    }
}

/// A whole number becomes a double precision in what could be a numeric as well.
#[test]
fn what_rounds_constants_may_be_written_out_as_a_setting_says() {
    for call in [
        "floor", "ceil", "ceiling", "round", "trunc", "sign", "sinh", "point",
    ] {
        let source = format!("begin return {call}(12345)::text; end");
        assert_eq!(plpgsql(&source), None, "{source}");
    }
}

#[test]
fn what_is_called_is_found() {
    let source = "declare x int := a.F(1); begin if g (x) then perform h(lower(b), nextval('s')); \
        end if; select j(x) into y from k(z); insert into t (a, b) values (l(1)); \
        return m(1); end";
    let found = plpgsql(source).unwrap();
    let calls = names(&found.calls);
    assert_eq!(calls, ["f", "g", "h", "j", "k", "l", "m"], "{source}");
    assert!(found.writes);
    assert_eq!(names(&sql("select \"G\"(1)").unwrap().calls), ["g"]);
    assert_eq!(
        names(&sql("select if(1), next(2)").unwrap().calls),
        ["if", "next"]
    );
    assert!(!sql("select 1 from t").unwrap().writes);
    assert!(sql("select 1 from t for update").unwrap().writes);
}

#[test]
fn bodies_are_read_up_to_a_length() {
    let body = |length: usize| format!("begin return {}1; end", "1+".repeat(length / 2));
    assert!(plpgsql(&body(MAX_BODY - 100)).is_some());
    assert_eq!(plpgsql(&body(MAX_BODY)), None);
}

/// What is computed from a variable, a column or an argument is computed each time, unless the
/// server puts the body in the place of a call of its function.
#[test]
fn what_is_computed_anew_each_time_is_written_out_anew() {
    for source in [
        "begin return sqrt(a); end",
        "begin return 'x' || power(2, new.a); end",
        "begin return exp(ln(a)) + date_part('year', b); end",
        "begin select degrees(acos(sin(radians(t.lat)))) into x from t; return x; end",
        "begin return a ^ 2; end",
        "begin return decode($1, 'hex'); end",
        "begin return floor(a) || abs(1); end",
        "begin return a at time zone 'utc' > b at time zone 'Asia/Tokyo'; end",
    ] {
        let deeds = plpgsql(source);
        assert!(deeds.is_some_and(|deeds| !deeds.computes), "{source}");
    }
    for source in ["select sqrt($1)", "select power(2, a) from t"] {
        assert!(sql(source).is_some_and(|deeds| deeds.computes), "{source}");
    }
    assert!(sql("select a + $1 from t").is_some_and(|deeds| !deeds.computes));
    // Nobody has to wait for long.
    assert_eq!(
        plpgsql(&format!("begin return {}", "sqrt(".repeat(10_000))),
        None
    );
}
