//! The lexer against the server's own: where literals begin and end, and what they say.

use super::chance::Chance;
use super::client::{Client, Frame};
use super::statements::statement;
use super::world::{Pair, server};
use pgautoprep::sql::scan::{Class, Literal};
use pgautoprep::sql::{Dialect, Scan, ScanLimits, judge, rewrite};
use std::fmt::Write;

/// Tables with columns for literals of every class.
const SETUP: &str = "CREATE TABLE t (a int, b bigint, n numeric, s text, \"ü\" text, u int[]); \
    CREATE OPERATOR @- (rightarg = int, procedure = int4abs); \
    CREATE OPERATOR +@ (leftarg = int, rightarg = int, procedure = int4pl)";

/// Texts that have misled lexers. Lines end with a line feed unless written otherwise.
const TEXTS: &[&str] = &[
    // Comments.
    "/* a */select/**/1/* /* nested */ 2 */from/*'*/t/*\"*/where/*;*/a=/*$$*/5--'",
    "--'\nselect 'x' --\"\nfrom t",
    "select 1 -- c\r, 2 -- d\n, 3",
    "select 1/**/+/**/-/**/2",
    "select 1 - -2, 1 - - 2, 1--2\n, 3",
    "select a - - 1, a -- 1\n - 1, a /* - */ - 1 from t",
    "select 4/2, 4/ 2, 4 /-2, 4 */*c*/ 2",
    "select '/*', '*/', '--', 'a--b' from t",
    "/*+ SeqScan(t) */ select 1",
    "select 1 /*+ hint */ + 2",
    "select 'a' /* c */ , 'b'",
    "select 1 /* é */ + 2, 'é' /* 'x' */ from t",
    "/*//**/*/select 1",
    "select 1/* **/+2/***/",
    // Strings.
    "select '', '''', '''''', 'a''', '''a', 'a''''b'",
    "select 'a'\n'b', 'c' \t\r\n 'd', 'e' -- x\n 'f', 'g'\n\n'h'''",
    "select 'a'\n -- one\n -- two\n'b'",
    "select 'a'\r'b', 'c'\x0c\n'd'",
    "select E'a'\n'b\\n', 'a\\'\n'b', e'\\'' , E'\\\\'",
    "select E'\\b\\f\\n\\r\\t\\q\\\"', E'a''b', E'\\101\\7\\060', E'\\x41\\x4'",
    "select E'\\u00e9\\U0001F600'",
    "select E'\\xe9', 1",
    "select E'\\303\\251', 1",
    "select E'\\xc3\\xa9', 1",
    "select E'\\u00e', 1",
    "select E'\\ud83d\\ude00', 1",
    "select E'\\v\\a\\e\\0001', 1",
    "select E'\\x', 1",
    "select E'a\\\nb', 'a\nb', 1",
    "select 'ü', E'ü', $$ü$$, N'ü', U&'\\00fc', U&'!00fc' UESCAPE '!', 1",
    "select B'101', X'1F', b'', x'', 1",
    "select n'a', N'b'\n'c', 1",
    "select 'a\\', 'b', '\\\\'",
    "select $$$$, $$a$b$$, $x$ $$ $y$ $x$, $x$$x$, $é1$'$é1$, $_$_$_$",
    "select $a$$b$$a$, $A$ $a$ $A$",
    "select $$a\nb$$, $$'$$, $$--$$, $$/*$$",
    "select a$$ from (select 1 as \"a$$\") x where \"a$$\" = 1",
    "select a$b from (select 1 as a$b) x where a$b = 1",
    "select 'a'::text, 'a' ::text, text 'a', text'a', text/**/'a'",
    "select \"text\" 'a', pg_catalog.text 'a', 1",
    "select 'a'collate\"C\", 'a' COLLATE \"C\" from t",
    "select'a'from t where s='b'and s<>'c'or's'=s",
    "select 'a'as b,'c'as\"d\",'e'f from t",
    "select 'a''b'\n'c''d' || $$e$$",
    "select 'a'\n/* no */ , 'b'",
    "select * from t where s in('a','b')and a in(1,2)",
    "select * from t where s like'a%'escape'!'",
    "select 'it''s' as \"it's\", \"ü\", 1 from t",
    "select '\u{a0}', 'a\u{3000}b', 1",
    // Numbers, and the signs that belong to them (H-06).
    "select 1, 01, 007, 0, 00, 1., .5, 1.5, 1.e5, 1e5, 1E+5, 1e-5, .5e-3, 0.0, 1.50",
    "select 2147483647, 2147483648, -2147483648, -2147483649, 4294967296",
    "select 9223372036854775807, 9223372036854775808, -9223372036854775808, -9223372036854775809",
    "select 99999999999999999999999999, 1e400::numeric, 123456789012345678901234567890.5",
    "select 000000000000000000000000000001, 0000000002147483648",
    "select - 1, -/**/1, -\n1, - -1, -(1), (-1), -(-1), -(2147483648), - 2147483648",
    "select -1::int, -(1)::int, -1.5::numeric, - 1 :: int",
    "select -2^2, 2^-2, 2 ^ -2, 2^ -2",
    "select 1+-1, 1-+1, 1*-1, 1/-1, 1%-1, 1=-1, 1<-1, 1>-1, 1<=-1, 1<>-1, 1!=-1",
    "select a+-1, a- -1, a=-1, a<-1, a>-1 from t",
    "select @-5, @ -5, @- 5, 1+@2, 1 +@ 2, 1+@-2",
    "select a-1, a -1, a - 1, a-1-1, (a)-1, u[1]-1, 'x'::text||-1 from t",
    "select -a, -a-1, - a - - 1 from t",
    "select abs(-1), abs(- 1), coalesce(-1, -2), greatest(-1,-2)",
    "select case when a=-1 then-1 else-2 end from t",
    "select * from t where a between-1and-2",
    "select * from t where a between -1 and -2 and b in (-1,-2) limit 1 offset 0",
    "select u[1], u[-1], u[1:2], u[-1:-2], u[:2], u[1:], (u)[1] from t",
    "select (array[1,2,3])[2], array[-1,- 2], array[[1],[2]]",
    "select 1as x, 1e1as y, 1.as z",
    "select 1from t",
    "select 1.5from t",
    "select a from t where a=1or a=2and b=3",
    "select 1_000, 0x1F, 0o17, 0b101, 0XfF, 1_0.0_1, 1e1_0",
    "select 0x7fffffff, 0x80000000, -0x80000000, 0xffffffffffffffff, 0x_1f",
    "select 1__0",
    "select 1_",
    "select 0x",
    "select 0xg",
    "select 0b2",
    "select 1_a",
    "select 1e",
    "select 1e+",
    "select 1ex",
    "select 1.5.5",
    "select 1..2",
    "select .5.5",
    "select 1.e",
    "select 5.e1, 5 .e1",
    "select 0.1e1.1",
    "select 1.::int, .5::int, 1e3::int",
    "select 1 a, 1 \"b\", 1 as c, 'x' d",
    "select 10::text||20, 10||'a', 1::text::int",
    // Operators next to literals.
    "select 'a'||'b', 'a'|| 'b','a' ||'b', '1'::int+'2', '1'::int-'2', '3'::int*'-1'",
    "select '{\"a\":1}'::jsonb->'a', '{\"a\":1}'::jsonb->>'a', '[1]'::jsonb->0, '[1]'::jsonb->-1",
    "select '{\"a\":1}'::jsonb?'a', '{\"a\":1}'::jsonb@>'{}', '{}'::jsonb<@'{\"a\":1}'",
    "select '{\"a\":{\"b\":1}}'::jsonb#>'{a,b}', '{\"a\":1}'::jsonb-'a', '[1]'::jsonb-0",
    "select 'a'~'b','a'~*'b','a'!~'b','a'!~*'b','a'~~'b','a'!~~'b'",
    "select 1<2,1>2,1<=2,1>=2,1<>2,1!=2,1=2, 1<-2, 5%3, 5%-3, 2|1, 2&1, 2#1, ~1, ~-1, 1<<2, 8>>1",
    "select |/4.0, ||/8.0, @-1.5, |/ -4.0 from t",
    "select 1 operator(pg_catalog.+) 2",
    "select 1 operator(pg_catalog.-) 2",
    "select operator(pg_catalog.-) 2",
    "select a=1 is true, a=-1 is not null from t",
    "select a::text='1', a::text <'1', 1::bigint=a from t",
    "select not'true', not 'f'::bool, 1 is distinct from 2",
    "select * from t where (a,b)=(1,2) and row(a,s)=row(1,'x')",
    // Places where a literal is no expression.
    "select s::varchar(3), '1'::numeric(5,2), 'a'::char(3), 1.5::numeric(3, 1) from t where a = 1",
    "select '1 day'::interval, '1'::interval, 'x'::bit(3)::text, cast('1' as int) from t",
    "select interval '1' day, interval '1 day', interval(3) '1.5', 1",
    "select date '2020-01-01', time '10:00', timestamp(0) '2020-01-01 10:00:00.5', 1",
    "select '2020-01-01'::timestamp(0), 1 from t",
    "select extract(year from date '2020-01-01'), extract('year' from '2020-01-01'::date)",
    "select substring('abc' from 2 for 1), position('b' in 'abc')",
    "select overlay('abc' placing 'x' from 2)",
    "select trim('x' from 'xax'), trim(both from ' a '), trim(leading 'x' from 'xa')",
    "select * from t order by 1, a + 1, 2 desc limit 1",
    "select a, count(*) from t group by 1 having count(*) > 1 order by 2",
    "select * from t limit 1 offset 2",
    "select * from t fetch first 1 rows only",
    "select * from t fetch first 1 + 1 rows only",
    "select * from t offset 1 rows",
    "select * from t tablesample bernoulli (10) repeatable (5)",
    "select sum(a) over (order by b rows between 1 preceding and 2 following) from t",
    "select * from generate_series(1, 3) as g(x) where x > 1",
    "select * from t where a = any('{1,2}') and a = any(array[1,2]) and a <> all('{3}'::int[])",
    "values (1, 'a'), (-2, 'b')",
    "values (1), (2) order by 1 limit 1",
    "with x as (select 1 as a) select * from x where a = 1",
    "with recursive x(n) as (select 1 union all select n + 1 from x where n < 3) select * from x",
    "insert into t (a, s) values (1, 'x'), (-1, E'y\\n') returning a + 1",
    "update t set a = -1, s = 'x' || 'y' where b = 1 returning *",
    "delete from t where a = 1 and s = 'x'",
    "select 1; ",
    "select 1;;",
    ";select 1",
    "select 1; -- c",
    "select 1; select 2",
    "(select 1)",
    "(select 1) union (select 2)",
    "table t",
    // Identifiers.
    "select \"a\"\"b\", 1 from (select 1 as \"a\"\"b\") x",
    "select \"'\", \"--\", \"/*\", 1 from (select 1 as \"'\", 2 as \"--\", 3 as \"/*\") x",
    "select ü1, é, 1 from (select 1 as ü1, 2 as é) x where ü1=1",
    "select U&\"\\00fc\", 1 from t",
    "select u&1, 2 from (select 3 as u) x",
    "select e, E, 1 from (select 5 as e) x where e=1 and e >'2'",
    "select x.e1, 1 from (select 2 as e1) x where x.e1=1",
    "select x .e1, x. e1, 1 from (select 2 as e1) x",
    "select x.*, 1-1, x.* from (select 2 as e1) x",
    "select b.b, n.n, x'1', 1 from t b, t n",
    "select t.a-1, t.\"a\"-1, t . a -1 from t",
    "select _1, _, 1 from (select 1 as _1, 2 as _) x",
    "select $1",
    "select 'a', $1",
    "select $1a",
    "select a$1 from (select 1 as a$1) x where 1=1",
    "select current_date - 1 < '2020-01-01', current_timestamp::text = 'x', localtime -'1 h' < 'x'",
    "select null - 1, true and 1=1, array[1]-1",
    "select all 1, distinct -1",
    "select all -1",
    "select distinct -1, 2",
    "select a from t where a is not null and -1 = -a",
    "select a from t for update of t",
    "select 1 where'a'='a'and not-1=1",
];

/// Literals to put into [`PLACES`].
const LITERALS: &[&str] = &[
    "1",
    "007",
    "1.",
    ".5",
    "1e3",
    "1.5E-3",
    "2147483648",
    "9223372036854775808",
    "-1",
    "- 1",
    "-/**/1",
    "-2147483648",
    "-.5",
    "+1",
    "(1)",
    "-(1)",
    "- - 1",
    "0x1F",
    "-0x1F",
    "1_000",
    "0b1",
    "'1'",
    "'1'::int",
    "E'1'",
    "e'\\061'",
    "$$1$$",
    "$a$1$a$",
    "'1'\n''",
    "E''\n'1'",
    "''''",
    "int '1'",
    "'1'/**/",
    "/**/'1'",
    "'1'--\n",
    "U&'1'",
    "N'1'",
    "B'1'",
    "null",
];

/// Texts with a place for a literal.
const PLACES: &[&str] = &[
    "select {}",
    "select {}from t",
    "select{}",
    "select a,{} from t",
    "select {},a from t",
    "select {}as x",
    "select {} x",
    "select ({})",
    "select a from t where a={}",
    "select a from t where a ={}",
    "select a from t where a= {}and b=1",
    "select a from t where a<{}",
    "select a from t where {}=a",
    "select a from t where a>={}or a=1",
    "select a from t where a in({},{})",
    "select a from t where a between {}and {}",
    "select a+{} from t",
    "select a-{} from t",
    "select a - {} from t",
    "select a*{} from t",
    "select 2*{}",
    "select 2-{}",
    "select 2 -{}",
    "select -{}",
    "select - {}",
    "select -a+{} from t",
    "select @{}",
    "select {}::text",
    "select {} ::text",
    "select ({})::text",
    "select {}||s from t",
    "select s||{} from t",
    "select u[{}] from t",
    "select u[1:{}] from t",
    "select array[{}]",
    "select array[a,{}] from t",
    "select coalesce(a,{}) from t",
    "select case when a={}then {}else {}end from t",
    "select abs({})",
    "select a from t limit {}",
    "select a from t order by a+{}",
    "select a from t order by {}",
    "select a, {} from t group by a, 2",
    "insert into t(a) values({})",
    "insert into t(a) values({}),({})",
    "update t set a={}where b={}",
    "delete from t where a={}",
    "select \"a\"-{} from t",
    "select (a)-{} from t",
    "select t.a-{} from t",
    "select null-{}",
    "select case a when {}then 1 end-{} from t",
    "select a is null and {}=a from t",
    "select a from t where not{}=a",
    "select all {}",
    "select distinct {}",
    "select a as b,{} from t",
    "select a b,{} from t",
    "select * from t where (a,b)=({},{})",
    "select a={} is true from t",
    "select {}::int-{}",
    "select u[1]-{} from t",
    "select f from (values({})) x(f)",
    "/**/select/**/{}/**/",
    "select {}--\n",
    "select {};",
    "select/*'*/{}/*'*/",
    "select 'x',{},'y'",
    "select $$x$$,{}",
];

/// The server's answer to one question.
fn rows(answer: &[Frame]) -> Option<Vec<Option<String>>> {
    if answer.iter().any(|frame| frame.tag == b'E') {
        return None;
    }
    let rows = answer.iter().filter(|frame| frame.tag == b'D');
    Some(rows.flat_map(Frame::columns).collect())
}

/// A dollar-quoted string that says `value`.
fn quoted(value: &str) -> String {
    format!("$qq${value}$qq$")
}

struct Check {
    client: Client,
    scan: Scan,
    dialect: Dialect,
    scanned: usize,
    compared: usize,
    /// Whether plans are compared, or only texts parsed.
    whole: bool,
    wrong: Vec<String>,
}

impl Check {
    fn new(client: Client) -> Self {
        Self {
            client,
            scan: Scan::new(ScanLimits::default(), 1),
            dialect: Dialect {
                server_major: u16::try_from(server().version_major()).unwrap(),
            },
            scanned: 0,
            compared: 0,
            whole: true,
            wrong: Vec::new(),
        }
    }

    /// Fails if anything was wrong, or hardly anything was looked at.
    fn end(self, scanned: usize, compared: usize) {
        eprintln!(
            "{} texts scanned, {} compared with their prepared form",
            self.scanned, self.compared
        );
        assert!(self.wrong.is_empty(), "{}", self.wrong.join("\n"));
        assert!(
            self.scanned >= scanned && self.compared >= compared,
            "too few"
        );
    }

    fn text(&mut self, text: &str) {
        let Some(plan) = rows(
            &self
                .client
                .query(&format!("EXPLAIN (VERBOSE, COSTS OFF) {text}")),
        ) else {
            // The server refuses it or finds several statements: nothing can go wrong.
            return;
        };
        if self.scan.run(text.as_bytes(), self.dialect).is_err() {
            return;
        }
        // What is compared here are literals; lists are statements' business.
        if self.scan.unfold(text.as_bytes()).is_err() {
            return;
        }
        self.scanned += 1;
        for literal in self.scan.literals().to_vec() {
            self.literal(text, &literal);
        }
        let Ok(eligible) = judge(text, &self.scan, self.dialect) else {
            return;
        };
        self.prepared(text, &eligible.arguments, &plan);
    }

    /// The server must read the literal's token as it reads the value bound in its place.
    fn literal(&mut self, text: &str, literal: &Literal) {
        let mut value = Vec::new();
        rewrite::argument(text.as_bytes(), &self.scan, literal, &mut value);
        let value = String::from_utf8(value).unwrap();
        let token = &text[literal.range()];
        let kind = match literal.class {
            Class::Int4 => "integer",
            Class::Int8 => "bigint",
            Class::Numeric => "numeric",
            // Lists and rows were taken apart.
            _ => "text",
        };
        // A constant of no type of its own has none that could be asked for.
        let typed = match literal.class {
            Class::Text => "'text'".to_owned(),
            _ => format!("pg_typeof({token})"),
        };
        let question = format!(
            "SELECT ({token})::text, ({}::{kind})::text, {typed}::text",
            quoted(&value)
        );
        let answer = rows(&self.client.query(&question));
        let alike = answer
            .as_ref()
            .is_some_and(|answer| answer[0] == answer[1] && answer[2].as_deref() == Some(kind));
        if !alike {
            self.wrong
                .push(format!("{text:?}: {token:?} is {value:?}, {answer:?}"));
        }
    }

    /// The text with placeholders must get the plan of the text with literals.
    fn prepared(&mut self, text: &str, arguments: &[bool], plan: &[Option<String>]) {
        let rewritten = rewrite(text.as_bytes(), &self.scan, arguments);
        let rewritten_text = String::from_utf8(rewritten.text).unwrap();
        let types = rewritten.oids.iter().map(|oid| match oid {
            23 => "int4",
            20 => "int8",
            1700 => "numeric",
            _ => "unknown",
        });
        let mut types = types.collect::<Vec<_>>().join(", ");
        let lifted = self.scan.literals().iter().zip(arguments);
        let mut tokens = String::new();
        for (literal, _) in lifted.filter(|(_, argument)| **argument) {
            let separator = if tokens.is_empty() { "" } else { ", " };
            let _ = write!(tokens, "{separator}{}", &text[literal.range()]);
        }
        // What stands in for arguments.
        if tokens.is_empty() {
            (types, tokens) = ("int4".to_owned(), "NULL".to_owned());
        }
        let prepare = self
            .client
            .query(&format!("PREPARE p ({types}) AS {rewritten_text}"));
        if let Some(error) = prepare.iter().find(|frame| frame.tag == b'E') {
            // What cannot be a parameter is the oracle's to find; a text that does not parse is
            // the lexer's mistake.
            if error.field(b'C').as_deref() == Some("42601") {
                self.wrong
                    .push(format!("{text:?}: {rewritten_text:?}: {error:?}"));
            }
            return;
        }
        if !self.whole {
            self.client.run("DEALLOCATE p");
            return;
        }
        let explain = format!("EXPLAIN (VERBOSE, COSTS OFF) EXECUTE p ({tokens})");
        let answer = rows(&self.client.query(&explain));
        if answer.as_deref() != Some(plan) {
            self.wrong.push(format!(
                "{text:?}: {rewritten_text:?}: {plan:?}, {answer:?}"
            ));
        }
        self.compared += 1;
        self.client.run("DEALLOCATE p");
    }
}

/// A text with other white space between its words, with comments there, or with none where there
/// was some: the server says what it then means.
fn respelled(text: &str, chance: &mut Chance) -> String {
    const GAPS: [&str; 12] = [
        "",
        "",
        "\n",
        "\t",
        "/**/",
        "/*'*/",
        "--'\n",
        " -- $$\r\n ",
        "/* /* */ \" */",
        "  ",
        "\x0c",
        "\r",
    ];
    let mut out = String::new();
    for c in text.chars() {
        match c {
            ' ' if chance.percent(30) => out.push_str(GAPS[chance.below(12)]),
            '(' | ')' | ',' | '=' | '-' | '|' if chance.percent(10) => {
                out.push(c);
                out.push_str(GAPS[chance.below(12)]);
            }
            c => out.push(c),
        }
    }
    out
}

#[test]
fn random_statements_are_read_alike_however_they_are_spelled() {
    let seed = super::random::variable("PGAUTOPREP_RANDOM_SEED", 1);
    let count = super::random::variable("PGAUTOPREP_RANDOM_COUNT", 600);
    let pair = Pair::new();
    let mut check = Check::new(Client::login(&pair.address, &pair.names[0]));
    check.whole = false;
    let chance = &mut Chance::new(seed);
    for _ in 0..count {
        let template = statement(chance, false);
        let values: Vec<String> = template
            .slots
            .iter()
            .map(|slot| slot.token(chance))
            .collect();
        let mut text = String::new();
        template.root.render(&values, &mut text);
        check.text(&respelled(&text, chance));
    }
    check.end(count / 6, 0);
}

#[test]
fn the_lexer_reads_what_the_server_reads() {
    let address = server().host_port();
    Client::login(&address, "postgres").run("CREATE DATABASE lexer");
    let mut client = Client::login(&address, "lexer");
    client.run(SETUP);
    client.run("SET client_min_messages = error");
    let mut check = Check::new(client);
    for text in TEXTS {
        check.text(text);
    }
    for place in PLACES {
        for literal in LITERALS {
            check.text(&place.replace("{}", literal));
        }
    }
    check.end(1_000, 700);
}
