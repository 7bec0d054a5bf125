//! The words of an expression in a plan, with everything constant for one execution written alike.

use super::constant::{Constant, Types};

#[derive(Debug, Clone)]
pub(super) enum Token<'a> {
    /// Constant for one execution.
    Constant(Constant),
    /// A name or keyword.
    Word(&'a str),
    /// An operator.
    Operator(&'a str),
    /// `(`, `)`, `[`, `]` or `,`.
    Mark(char),
}

impl Token<'_> {
    /// Whether both are written alike. All constants are, because a plan of literals shows them
    /// folded.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Constant(_), Self::Constant(_)) => true,
            (Self::Word(one), Self::Word(other)) | (Self::Operator(one), Self::Operator(other)) => {
                one == other
            }
            (Self::Mark(one), Self::Mark(other)) => one == other,
            _ => false,
        }
    }

    /// Whether it is this mark.
    fn is_mark(&self, mark: char) -> bool {
        matches!(self, Self::Mark(found) if *found == mark)
    }
}

/// Whether two expressions are alike, token for token.
pub(super) fn are_alike(one: &[Token<'_>], other: &[Token<'_>]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| one.is_alike(other))
}

/// One expression with its constants written alike.
pub(super) fn normalize<'a>(text: &'a str, types: Types<'_>) -> Vec<Token<'a>> {
    tokens(text, types, None)
}

/// The same of a generic plan's without what COALESCE never gets to because it begins with a
/// literal, which is in no plan of literals (`eval_const_expressions_mutator` in `clauses.c`). The
/// arguments that stand there are added to `unread`.
pub(super) fn normalize_read<'a>(
    text: &'a str,
    types: Types<'_>,
    unread: &mut Vec<usize>,
) -> Vec<Token<'a>> {
    tokens(text, types, Some(unread))
}

fn tokens<'a>(
    text: &'a str,
    types: Types<'_>,
    mut unread: Option<&mut Vec<usize>>,
) -> Vec<Token<'a>> {
    let mut out = Vec::new();
    let mut rest = text;
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
            Token::Mark(close @ (')' | ']')) => {
                let unread = unread.as_deref_mut().filter(|_| close == ')');
                if !unread.is_some_and(|unread| fold_coalesce(&mut out, unread)) {
                    fold_group(&mut out, close, types);
                }
            }
            token => out.push(token),
        }
    }
    out
}

/// A group has just ended: if it holds only constants, it and what it is an argument of become one.
fn fold_group<'a>(out: &mut Vec<Token<'a>>, close: char, types: Types<'_>) {
    let open = if close == ')' { '(' } else { '[' };
    let Some(start) = out.iter().rposition(|token| token.is_mark(open)) else {
        out.push(Token::Mark(close));
        return;
    };
    let group = out.get(start + 1..).unwrap_or_default();
    let before = start.checked_sub(1).and_then(|at| out.get(at));
    if let (Some(Token::Word(word)), [], '(') = (before, group, open)
        && is_function(word)
    {
        let call = Constant::call(word, Vec::new(), types);
        out.truncate(start - 1);
        out.push(Token::Constant(call));
        return;
    }
    if let Some([zone, moment]) = zoned(group) {
        let call = Constant::call("timezone", vec![zone, moment], types);
        out.truncate(start);
        out.push(Token::Constant(call));
        return;
    }
    let Some((parts, operators)) = constants(group) else {
        out.push(Token::Mark(close));
        return;
    };
    let list = group.iter().any(|token| token.is_mark(','));
    let (keep, folded) = match before {
        Some(Token::Word("ARRAY")) if open == '[' => (start - 1, Constant::list(parts, types)),
        // A function over constants; the words before other parentheses are not functions.
        Some(Token::Word(word)) if open == '(' && is_function(word) => {
            (start - 1, Constant::call(word, parts, types))
        }
        Some(Token::Word("NULLIF")) if open == '(' && operators.is_empty() => {
            (start - 1, Constant::null_if(parts, types))
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

/// A parenthesis has just ended: if it is that of a COALESCE whose first value is that of a
/// literal, which is never NULL, the whole is that value. Returns whether it is.
fn fold_coalesce(out: &mut Vec<Token<'_>>, unread: &mut Vec<usize>) -> bool {
    let mut depth = 1;
    let start = out.iter().rposition(|token| {
        depth += usize::from(token.is_mark(')'));
        depth -= usize::from(token.is_mark('('));
        depth == 0
    });
    let Some(start) = start.filter(|start| *start > 0) else {
        return false;
    };
    let group = out.get(start + 1..).unwrap_or_default();
    let (
        Some(Token::Word("COALESCE")),
        [first @ Token::Constant(value), Token::Mark(','), rest @ ..],
    ) = (out.get(start - 1), group)
    else {
        return false;
    };
    if !value.is_present() {
        return false;
    }
    for token in rest {
        if let Token::Constant(constant) = token {
            unread.extend(constant.parameters());
        }
    }
    let first = first.clone();
    out.truncate(start - 1);
    out.push(first);
    true
}

/// Zone and moment of `moment AT TIME ZONE zone`, which until 13 is a call of `timezone` in a plan.
fn zoned(group: &[Token<'_>]) -> Option<[Constant; 2]> {
    use Token::Word;
    match group {
        [
            Token::Constant(moment),
            Word("AT"),
            Word("TIME"),
            Word("ZONE"),
            Token::Constant(zone),
        ] => Some([zone.clone(), moment.clone()]),
        _ => None,
    }
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

/// Whether a word directly before a parenthesis names a function: deparsed keywords are upper case.
fn is_function(word: &str) -> bool {
    word.chars().any(|c| c.is_lowercase() || c == '"')
}

/// Words that stand for a value of the moment, which the planner may look at.
const MOMENTS: [&str; 11] = [
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "CURRENT_ROLE",
    "CURRENT_USER",
    "USER",
    "SESSION_USER",
    "CURRENT_CATALOG",
    "CURRENT_SCHEMA",
];

fn next(text: &str) -> Option<(Token<'_>, &str)> {
    let text = text.trim_start();
    let first = text.chars().next()?;
    let split = |at: usize| text.split_at(at);
    let token = match first {
        '\'' => {
            let rest = string_end(&text[1..]);
            let quoted = &text[..text.len() - rest.len()];
            return Some((Token::Constant(Constant::string(quoted)), rest));
        }
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
        c if is_word(c) => split(word_end(text)),
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
        _ if MOMENTS.contains(&word) => (Token::Constant(Constant::moment(word)), rest),
        _ => (Token::Word(word), rest),
    })
}

/// Where a name ends, which may be qualified, and any part of it in quotes.
fn word_end(text: &str) -> usize {
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        !quoted && !is_word(c)
    });
    end.unwrap_or(text.len())
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
        }
    }
}
