//! The plan proof: whether a generic plan is the plan the literals get.
//!
//! Both plans come as the lines of `EXPLAIN (VERBOSE, COSTS OFF)`. Node for node, index for index,
//! condition for condition they must be the same once everything that is constant for one execution
//! is written alike: a literal, a parameter, a cast of either, a function call or operator over
//! nothing else, an array of them. Folding makes the first plan show `'8'::integer` where the
//! second shows `($1 + $2)`; both are one constant. What is not constant must be equal to the
//! letter.
//!
//! Where the generic plan has more to do with a parameter than to use it, that must be something
//! that cannot fail for the values admitted; these become [`Guard`]s.

use super::constant::{Constant, Types};
use crate::statement::guard::{Check, Guard};

/// Elements from which the server looks an IN list up in a hash table if the list is a constant,
/// and only then (`MIN_ARRAY_SIZE_FOR_HASHED_SAOP` in `clauses.c`, since 14).
const HASHED_LIST: usize = 9;

/// Whether `generic` is `custom` with parameters of these types in place of constants: the guards
/// under which it behaves alike, or `None`.
#[must_use]
pub(super) fn same_plan(
    custom: &[String],
    generic: &[String],
    types: &[u32],
    bare: &[bool],
) -> Option<Vec<Guard>> {
    if custom.len() != generic.len() {
        return None;
    }
    let mut guards = Vec::new();
    let mut visible = vec![false; types.len()];
    for (custom, generic) in custom.iter().zip(generic) {
        let custom_tokens = normalize(custom, types);
        let generic_tokens = normalize(generic, types);
        if custom_tokens != generic_tokens
            || loses_hashed_list(generic)
            || orders_by_estimate(generic)
        {
            return None;
        }
        let label = generic.trim_start();
        let is_result = label.starts_with("Output:") || label.starts_with("Function Call:");
        let mut operator = "";
        for pair in generic_tokens.into_iter().zip(&custom_tokens) {
            let (mut constant, folded) = match pair {
                (Token::Constant(constant), Token::Constant(folded)) => (constant, folded),
                (Token::Operator(found), _) => {
                    operator = found;
                    continue;
                }
                _ => {
                    operator = "";
                    continue;
                }
            };
            if !(is_result && constant.run_like(folded)) {
                constant.convert_like(folded, types);
            }
            guards.extend(constant.guards(operator)?);
            operator = "";
            // What has a number in both plans is the executor's, and no argument of anybody's.
            if folded.parameters().is_empty() {
                for index in constant.parameters() {
                    *visible.get_mut(*index)? = true;
                }
            }
        }
    }
    for (argument, visible) in visible.into_iter().enumerate() {
        if !visible {
            guards.extend(unseen(argument, types, bare)?);
        }
    }
    guards.sort_by_key(|guard| guard.argument);
    guards.dedup();
    Some(guards)
}

/// What must be admitted of an argument that the plan does not show: VALUES of several rows, LIMIT,
/// what ON CONFLICT sets, and some more are left out of it, and so is what would be done with the
/// argument there. `None` if something might.
fn unseen(argument: usize, types: Types<'_>, bare: &[bool]) -> Option<Option<Guard>> {
    const NUMERIC: u32 = 1700;
    if !*bare.get(argument)? {
        return None;
    }
    let check = Check::Magnitude(i64::MAX.unsigned_abs());
    let wide = types.get(argument) == Some(&NUMERIC);
    Some(wide.then_some(Guard { argument, check }))
}

/// Whether the lines hold more than one plan tree, or none: what rewrite rules make.
#[must_use]
pub(super) fn is_one_tree(lines: &[String]) -> bool {
    let roots = lines
        .iter()
        .filter(|line| !line.starts_with(' ') && !line.starts_with("Query Identifier"));
    roots.count() == 1
        && !lines.iter().any(|line| line.trim().is_empty())
        && lines
            .first()
            .is_some_and(|line| !line.contains("rewrites to nothing"))
}

/// A long list outside an index condition that the generic plan must search one by one.
fn loses_hashed_list(line: &str) -> bool {
    let label = line.trim_start();
    if label.starts_with("Index Cond:") || label.starts_with("Recheck Cond:") {
        return false;
    }
    line.match_indices("(ARRAY[").any(|(at, _)| {
        let list = &line[at..];
        let list = &list[..list.find(']').unwrap_or(list.len())];
        list.contains('$') && list.matches(',').count() + 1 >= HASHED_LIST
    })
}

/// A node that returns its rows in the order of a hash table, whose size follows from an estimate:
/// a generic plan estimates otherwise than the literals do.
fn orders_by_estimate(line: &str) -> bool {
    const NODES: [&str; 7] = [
        "HashAggregate",
        "MixedAggregate",
        "HashSetOp",
        "Hash Full Join",
        "Hash Right Join",
        "Hash Right Anti Join",
        "Hash Right Semi Join",
    ];
    let node = line.trim_start().trim_start_matches("->").trim_start();
    let node = node.strip_prefix("Partial ").unwrap_or(node);
    let node = node.strip_prefix("Finalize ").unwrap_or(node);
    NODES.iter().any(|known| node.starts_with(known))
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token<'a> {
    /// Constant for one execution. All constants are equal.
    Constant(Constant),
    /// A name or keyword.
    Word(&'a str),
    /// An operator.
    Operator(&'a str),
    /// `(`, `)`, `[`, `]` or `,`.
    Mark(char),
}

/// One line with its constants written alike.
fn normalize<'a>(line: &'a str, types: Types<'_>) -> Vec<Token<'a>> {
    let indent = line.len() - line.trim_start().len();
    let mut out = vec![Token::Word(&line[..indent])];
    let mut rest = &line[indent..];
    while let Some((token, tail)) = next(rest) {
        rest = tail;
        match token {
            Token::Operator("::") => {
                let (name, tail) = type_name(rest);
                rest = tail;
                if let Some(Token::Constant(constant)) = out.last_mut() {
                    constant.cast(name, types);
                } else {
                    out.push(Token::Operator("::"));
                    out.push(Token::Word(name));
                }
            }
            Token::Mark(close @ (')' | ']')) => fold_group(&mut out, close, types),
            token => out.push(token),
        }
    }
    out
}

/// A group has just ended: if it holds only constants, it and what it is an argument of become one.
fn fold_group<'a>(out: &mut Vec<Token<'a>>, close: char, types: Types<'_>) {
    let open = if close == ')' { '(' } else { '[' };
    let Some(start) = out.iter().rposition(|token| *token == Token::Mark(open)) else {
        out.push(Token::Mark(close));
        return;
    };
    let group = out.get(start + 1..).unwrap_or_default();
    let Some((parts, operators)) = constants(group) else {
        out.push(Token::Mark(close));
        return;
    };
    let list = group.contains(&Token::Mark(','));
    let before = start.checked_sub(1).and_then(|at| out.get(at));
    let (keep, folded) = match before {
        Some(Token::Word("ARRAY")) if open == '[' => (start - 1, Constant::all(parts)),
        // A function over constants; the words before other parentheses are not functions.
        Some(Token::Word(word)) if open == '(' && is_function(word) => {
            (start - 1, Constant::call(word, parts))
        }
        Some(Token::Word("ANY" | "ALL")) if open == '(' && !list => {
            let folded = Constant::operation(parts, &operators, types);
            out.truncate(start + 1);
            out.extend([Token::Constant(folded), Token::Mark(close)]);
            return;
        }
        _ if open == '(' && !list => (start, Constant::operation(parts, &operators, types)),
        _ => {
            out.push(Token::Mark(close));
            return;
        }
    };
    out.truncate(keep);
    out.push(Token::Constant(folded));
}

/// The constants and operators of a group that holds nothing else but commas; `None` for any other,
/// and for one without constants.
fn constants<'a>(group: &[Token<'a>]) -> Option<(Vec<Constant>, Vec<&'a str>)> {
    let (mut parts, mut operators) = (Vec::new(), Vec::new());
    for token in group {
        match token {
            Token::Constant(constant) => parts.push(constant.clone()),
            Token::Operator(operator) => operators.push(*operator),
            Token::Mark(',') => {}
            _ => return None,
        }
    }
    (!parts.is_empty()).then_some((parts, operators))
}

/// Whether a word directly before a parenthesis names a function: deparsed keywords are upper case,
/// labels end with a colon.
fn is_function(word: &str) -> bool {
    !word.ends_with(':') && word.chars().any(|c| c.is_lowercase() || c == '"')
}

fn next(text: &str) -> Option<(Token<'_>, &str)> {
    let text = text.trim_start();
    let first = text.chars().next()?;
    let split = |at: usize| text.split_at(at);
    let token = match first {
        '\'' => return Some((Token::Constant(Constant::literal()), string_end(&text[1..]))),
        'E' if text[1..].starts_with('\'') => {
            return Some((Token::Constant(Constant::literal()), escape_end(&text[2..])));
        }
        '$' | '0'..='9' => {
            let end = text[1..]
                .find(|c: char| !c.is_ascii_alphanumeric() && c != '.')
                .map_or(text.len(), |at| at + 1);
            let constant = Constant::number_or_parameter(&text[..end]);
            return Some((Token::Constant(constant), &text[end..]));
        }
        '(' | ')' | '[' | ']' | ',' => return Some((Token::Mark(first), &text[1..])),
        '"' => split(1 + text[1..].find('"').map_or(text.len() - 1, |at| at + 1)),
        c if is_word(c) => split(text.find(|c| !is_word(c)).unwrap_or(text.len())),
        ':' if text.starts_with("::") => return Some((Token::Operator("::"), &text[2..])),
        c => {
            let end = text
                .find(|c: char| is_word(c) || c.is_whitespace() || "()[],'\"$".contains(c))
                .unwrap_or(text.len());
            let (operator, rest) = split(end.max(c.len_utf8()));
            return Some((Token::Operator(operator), rest));
        }
    };
    let (word, rest) = token;
    Some(match word {
        "true" | "false" => (Token::Constant(Constant::boolean()), rest),
        "NULL" => (Token::Constant(Constant::literal()), rest),
        // A label's colon belongs to it.
        _ if rest.starts_with(": ") => (Token::Word(&text[..=word.len()]), &rest[1..]),
        _ => (Token::Word(word), rest),
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '"') || !c.is_ascii()
}

/// What follows the quote that ends a plain string; quotes are doubled inside.
fn string_end(mut text: &str) -> &str {
    while let Some(at) = text.find('\'') {
        text = &text[at + 1..];
        match text.strip_prefix('\'') {
            Some(rest) => text = rest,
            None => return text,
        }
    }
    ""
}

/// What follows the quote that ends an escape string.
fn escape_end(text: &str) -> &str {
    let mut escaped = false;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\'' if matches!(characters.peek(), Some((_, '\''))) => {
                characters.next();
            }
            '\'' => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

/// Splits the name of a type, of several words perhaps, from what follows a `::`.
fn type_name(text: &str) -> (&str, &str) {
    const MORE: [&str; 13] = [
        "varying",
        "precision",
        "without",
        "with",
        "time",
        "zone",
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
        "to",
    ];
    let mut end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    loop {
        let rest = &text[end..];
        if rest.starts_with('(') {
            end += rest.find(')').map_or(rest.len(), |at| at + 1);
        } else if rest.starts_with("[]") {
            end += 2;
        } else if let Some(next) = rest.strip_prefix(' ')
            && MORE.contains(&&next[..next.find(|c| !is_word(c)).unwrap_or(next.len())])
        {
            end += 1 + next.find(|c| !is_word(c)).unwrap_or(next.len());
        } else {
            return text.split_at(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(custom: &str, generic: &str) -> bool {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        same_plan(&lines(custom), &lines(generic), &[23; 30], &[true; 30]).is_some()
    }

    #[test]
    fn a_call_left_to_the_execution_by_both_plans_is_alike() {
        assert!(same("  Output: f1(5)", "  Output: f1($1)"));
        assert!(same(
            "  Function Call: f(1, 'x'::text)",
            "  Function Call: f($1, $2)"
        ));
        // Folded in one plan only; estimated with its value; something else inside.
        assert!(!same("  Output: 25", "  Output: f1($1)"));
        assert!(!same("  Filter: (t.a = f1(5))", "  Filter: (t.a = f1($1))"));
        assert!(!same("  Output: f1((5 / 2))", "  Output: f1((5 / $1))"));
        assert!(!same("  Output: f1(g(5))", "  Output: f1(g($1))"));
    }

    #[test]
    fn constants_are_alike_however_they_are_written() {
        for (custom, generic) in [
            ("  Index Cond: (t.id = 42)", "  Index Cond: (t.id = $1)"),
            (
                "  Filter: (t.n = '5'::numeric)",
                "  Filter: (t.n = ($1)::numeric)",
            ),
            (
                "  Index Cond: (a.aid = ANY ('{1,2}'::integer[]))",
                "  Index Cond: (a.aid = ANY (ARRAY[$1, ($2 + $3)]))",
            ),
            ("  Output: (t.a + 5), 'x'::text", "  Output: (t.a + $1), $2"),
            (
                "  Output: 'abc'::character varying(10), now()",
                "  Output: ($1)::character varying(10), now()",
            ),
            (
                "  Filter: (t.x = 'a''b'::text)",
                "  Filter: (t.x = lower($1))",
            ),
            (
                "  Filter: (t.x = '-5'::integer)",
                "  Filter: (t.x = (- $1))",
            ),
            (
                "  Filter: (t.x = E'a\\\\''b'::text)",
                "  Filter: (t.x = $1)",
            ),
        ] {
            assert!(same(custom, generic), "{custom} / {generic}");
        }
    }

    #[test]
    fn everything_else_must_be_equal() {
        for (custom, generic) in [
            ("Index Scan using a on public.t", "Seq Scan on public.t"),
            (
                "Index Scan using a on public.t",
                "Index Scan using b on public.t",
            ),
            ("  Filter: (t.id = 42)", "  Filter: (t.other = $1)"),
            ("  Filter: (t.id = 42)", "  Filter: (t.id > $1)"),
            ("  Index Cond: (t.id = 42)", "  Filter: (t.id = $1)"),
            (
                "  Filter: (t.email = 'x'::text)",
                "  Filter: (($1 = ''::text) OR (t.email = $2))",
            ),
            (
                "  Filter: (t.x = f(t.y, 1))",
                "  Filter: (t.x = g(t.y, $1))",
            ),
            ("a\n  b", "a"),
            ("  Output: 1, 2", "  Output: $1"),
            (" Seq Scan on t", "  Seq Scan on t"),
            (
                "  Filter: ((t.x)::text = 'a'::text)",
                "  Filter: ((t.x)::bpchar = $1)",
            ),
        ] {
            assert!(!same(custom, generic), "{custom} / {generic}");
        }
    }

    #[test]
    fn a_long_list_in_a_filter_needs_its_hash_table() {
        let array = |n: usize| {
            (1..=n)
                .map(|k| format!("${k}"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let custom = "  Filter: (t.x = ANY ('{1,2,3}'::integer[]))";
        let generic = |n| format!("  Filter: (t.x = ANY (ARRAY[{}]))", array(n));
        assert!(same(custom, &generic(8)));
        assert!(!same(custom, &generic(9)));
        assert!(same(
            "  Index Cond: (t.x = ANY ('{1}'::integer[]))",
            &format!("  Index Cond: (t.x = ANY (ARRAY[{}]))", array(30))
        ));
    }

    #[test]
    fn casts_that_only_the_literal_shows_are_guarded() {
        let guards = |kind: u32, custom: &str| {
            let (custom, generic) = (custom.to_owned(), "  Output: $1, ctid".to_owned());
            let guards = same_plan(&[custom], &[generic], &[kind], &[false])?;
            Some(guards.iter().map(|guard| guard.check).collect::<Vec<_>>())
        };
        for (kind, custom, expected) in [
            (23, "5", Some(vec![])),
            (23, "'5'::bigint", Some(vec![])),
            (23, "'5'::smallint", Some(vec![Check::Magnitude(32767)])),
            (20, "5", Some(vec![Check::Magnitude(2_147_483_647)])),
            (23, "'5'::money", None),
            (1043, "'a'::character varying", Some(vec![])),
            (
                1043,
                "'a'::character varying(8)",
                Some(vec![Check::Length(8)]),
            ),
            (1042, "'a   '::character(4)", Some(vec![Check::Length(4)])),
            (1700, "1.00::numeric(6,2)", Some(vec![Check::Digits(4)])),
            (1700, "1.5", Some(vec![])),
            (
                1114,
                "'2020-01-01 00:00:00'::timestamp without time zone",
                Some(vec![]),
            ),
            (
                1184,
                "'2020-01-01 00:00:00+00'::timestamp(3) with time zone",
                Some(vec![]),
            ),
            (
                1082,
                "'2020-01-01 00:00:00'::timestamp without time zone",
                None,
            ),
            (16_400, "'sad'::mood", Some(vec![])),
            (16_400, "'x'::vector(3)", None),
            (16, "true", Some(vec![])),
            (1007, "'{1,2}'::integer[]", Some(vec![])),
            (1015, "'{a}'::character varying(3)[]", None),
            (1560, "'101'::bit(3)", None),
        ] {
            let custom = format!("  Output: {custom}, ctid");
            assert_eq!(guards(kind, &custom), expected, "{custom}");
        }
    }

    #[test]
    fn what_the_plan_does_not_show_must_be_bare() {
        let plan = ["Values Scan on \"*VALUES*\"".to_owned()];
        assert_eq!(same_plan(&plan, &plan, &[23], &[true]), Some(vec![]));
        assert_eq!(
            same_plan(&plan, &plan, &[1700], &[true]).map(|g| g.len()),
            Some(1)
        );
        assert_eq!(same_plan(&plan, &plan, &[23], &[false]), None);
        let initplan = ["  Filter: (t.a = $1)".to_owned()];
        assert_eq!(same_plan(&initplan, &initplan, &[23], &[false]), None);
    }

    #[test]
    fn rows_in_the_order_of_a_hash_table_are_not_trusted() {
        for line in [
            "HashAggregate",
            "    ->  Partial HashAggregate",
            "  ->  HashSetOp Except",
            "Hash Full Join",
            "  ->  Hash Right Join",
        ] {
            assert!(!same(line, line), "{line}");
        }
        for line in [
            "Hash Join",
            "  ->  Hash",
            "GroupAggregate",
            "  Output: \"HashAggregate\"",
        ] {
            assert!(same(line, line), "{line}");
        }
    }

    #[test]
    fn several_trees_are_told_from_one() {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(is_one_tree(&lines("Update on t\n  ->  Seq Scan on t")));
        assert!(is_one_tree(&lines(
            "Result\n  Output: 1\nQuery Identifier: -5"
        )));
        assert!(!is_one_tree(&lines(
            "Update on t\n  -> x\n\nInsert on u\n  -> y"
        )));
        assert!(!is_one_tree(&lines("Update on t\nInsert on u")));
        assert!(!is_one_tree(&[]));
    }

    #[test]
    fn hostile_lines_do_not_panic() {
        for line in [
            "",
            "(",
            "))",
            "[",
            "'",
            "E'",
            "::",
            "$",
            "a::",
            "\"",
            "ARRAY[",
            "é::é(",
            "x::numeric(",
        ] {
            let _ = normalize(line, &[]);
            let _ = loses_hashed_list(line);
        }
    }
}
