//! Lines, fields and words of `pg_hba.conf` and `pg_ident.conf` (`next_token` and
//! `next_field_expand` in PostgreSQL's `hba.c`).

/// One word.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::auth) struct Token {
    /// Without its quotes.
    pub(in crate::auth) text: Vec<u8>,
    /// It begins with a quote, so it is a name even if it reads like a keyword.
    pub(in crate::auth) is_quoted: bool,
}

/// Words with commas between them.
pub(in crate::auth) type Field = Vec<Token>;

/// A line's number, counted from 1, with its fields; or with what was expected.
type Line = Result<(usize, Vec<Field>), (usize, &'static str)>;

/// The lines of a text, those without a word included. One that ends with a backslash goes on in
/// the next.
pub(in crate::auth) fn lines(text: &[u8]) -> impl Iterator<Item = Line> {
    let mut rest = text.split(|byte| *byte == b'\n').enumerate();
    std::iter::from_fn(move || {
        let (index, first) = rest.next()?;
        let mut whole = without_returns(first).to_vec();
        while whole.last() == Some(&b'\\') {
            whole.pop();
            let Some((_, more)) = rest.next() else { break };
            whole.extend_from_slice(without_returns(more));
        }
        let line = index + 1;
        Some(match fields(&whole) {
            Ok(fields) => Ok((line, fields)),
            Err(expected) => Err((line, expected)),
        })
    })
}

/// A line without the carriage returns at its end, and nothing else (`pg_strip_crlf`): a backslash
/// with a space behind it ends its line, and what follows may be a rule.
fn without_returns(mut line: &[u8]) -> &[u8] {
    while let [front @ .., b'\r'] = line {
        line = front;
    }
    line
}

fn fields(line: &[u8]) -> Result<Vec<Field>, &'static str> {
    let mut fields = Vec::<Field>::new();
    let mut rest = line.trim_ascii_start();
    let mut goes_on = false;
    while !matches!(rest.first(), None | Some(b'#')) {
        let (token, behind) = token(rest)?;
        match (goes_on, fields.last_mut()) {
            (true, Some(field)) => field.push(token),
            _ => fields.push(vec![token]),
        }
        goes_on = behind.first() == Some(&b',');
        rest = behind.get(usize::from(goes_on)..).unwrap_or_default();
        rest = rest.trim_ascii_start();
    }
    match goes_on {
        true => Err("a name behind the comma"),
        false => Ok(fields),
    }
}

/// The word at the front, and what follows.
fn token(text: &[u8]) -> Result<(Token, &[u8]), &'static str> {
    let mut out = Vec::new();
    let (mut at, mut is_open) = (0, false);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' if is_open && text.get(at + 1) == Some(&b'"') => {
                out.push(b'"');
                at += 1;
            }
            b'"' => is_open = !is_open,
            b',' | b'#' if !is_open => break,
            byte if byte.is_ascii_whitespace() && !is_open => break,
            byte => out.push(*byte),
        }
        at += 1;
    }
    let is_quoted = text.first() == Some(&b'"');
    if is_open {
        return Err("a quote at the end of the name");
    }
    if out.is_empty() {
        return Err("a name that is not empty");
    }
    let token = Token {
        text: out,
        is_quoted,
    };
    Ok((token, text.get(at..).unwrap_or_default()))
}
