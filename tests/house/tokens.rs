//! The few things the model reads in a text: its literals and parameters, and where they stand.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Text,
    Parameter,
}

/// A literal, or a parameter.
#[derive(Debug, Clone)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// Its bytes in the text.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Without quotes; of a parameter, its number.
    pub(crate) value: String,
    /// It is compared with, or stored in, a column of integers.
    pub(crate) is_integer: bool,
}

/// The literals and parameters of a text, in order.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let (mut at, mut out) = (0, Vec::new());
    let digits = |from: usize| {
        bytes[from..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count()
    };
    while at < bytes.len() {
        let word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        let (kind, end) = match bytes[at] {
            b'\'' => {
                let length = text[at + 1..].find('\'').unwrap_or(text.len() - at - 2);
                (Kind::Text, at + length + 2)
            }
            b'$' => (Kind::Parameter, at + 1 + digits(at + 1)),
            b'0'..=b'9' if !word => (Kind::Number, at + digits(at)),
            _ => {
                at += 1;
                continue;
            }
        };
        let value = match kind {
            Kind::Text => &text[at + 1..end - 1],
            Kind::Parameter => &text[at + 1..end],
            Kind::Number => &text[at..end],
        };
        let before = text[..at].trim_end();
        let is_integer = before.ends_with("id =") || before.ends_with("VALUES (");
        out.push(Token {
            kind,
            start: at,
            end,
            value: value.to_owned(),
            is_integer,
        });
        at = end;
    }
    out
}

/// The position of a token as the server counts: in characters, from one.
pub(crate) fn position(text: &str, token: &Token) -> usize {
    text[..token.start].chars().count() + 1
}

/// The text with its parameters replaced.
pub(crate) fn spliced(text: &str, value: impl Fn(usize) -> String) -> String {
    let (mut out, mut at) = (String::new(), 0);
    for token in tokens(text) {
        if token.kind == Kind::Parameter {
            out += &text[at..token.start];
            out += &value(token.value.parse().unwrap());
            at = token.end;
        }
    }
    out + &text[at..]
}

/// What an EXPLAIN shows of the literals and parameters of a text.
pub(crate) fn shown(text: &str) -> String {
    let shown = tokens(text).into_iter().map(|token| match token.kind {
        Kind::Parameter => format!("${}", token.value),
        _ if token.is_integer || token.kind == Kind::Number => token.value,
        _ => format!("'{}'::text", token.value),
    });
    shown.collect::<Vec<_>>().join(", ")
}
