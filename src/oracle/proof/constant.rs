//! One constant of a plan: what a generic plan still has to do with its parameters, and for which
//! values that cannot fail.

mod cast;
mod instant;
mod kinds;
mod moment;
mod null_if;
mod sums;
mod work;

use crate::sql::oid;
use crate::statement::guard::{Check, Guard};
use cast::Written;
pub(super) use instant::{INSTANTS, Instant};
pub(super) use kinds::is_made;
pub(super) use moment::CLOCKS;
use work::Work;

/// The types of the parameters, by index.
pub(super) type Types<'a> = &'a [u32];

/// Functions of `pg_catalog` that have a result for every one text, if no others have their names.
pub(super) const TOTAL: [&str; 9] = [
    "lower",
    "upper",
    "length",
    "char_length",
    "md5",
    "btrim",
    "ltrim",
    "rtrim",
    "reverse",
];

/// Something that has one value during one execution.
///
/// It has no equality: all constants are alike where two plans are compared, see `Token::is_alike`.
#[derive(Debug, Clone)]
pub(super) struct Constant {
    /// The parameters it is made of, by index.
    parameters: Vec<usize>,
    guards: Vec<Guard>,
    /// The magnitude if it is a plain number.
    number: Option<u64>,
    /// Its type if it is known: that of a bare parameter, or of a cast.
    kind: Option<u32>,
    /// The type EXPLAIN shows for it; empty if it shows none.
    shown: String,
    /// What it has of its argument, if it has one.
    written: Written,
    /// It may have been rounded to the digits of a floating-point number.
    is_rounded: bool,
    /// Numbers added up in it.
    terms: usize,
    /// It is a `bigint` that is, or will be guarded to be, far from overflow.
    wide: bool,
    /// It is made of something like that.
    was_wide: bool,
    /// It is NULL if these two arguments are equal, else the first of them.
    null_if: Option<[u16; 2]>,
    /// Something is done with the parameters that may fail.
    may_fail: bool,
    /// Something is done with the parameters that makes other values of them.
    made_of: bool,
    /// What is left to be computed of it, with the constants left out: nothing else may fail.
    work: Option<Work>,
    /// It is a moment that is far from both ends of the calendar.
    near: bool,
    /// Functions of time are relied on to be the server's own.
    clock: bool,
    /// The time that it is, if it is one that is near the present.
    instant: Option<Instant>,
    /// That has been moved by an interval.
    moved: bool,
    /// Values of users' types are made a list, and are relied on to be none themselves.
    lists_made: bool,
    /// The parameters that name time zones. Nothing may fail once they are known.
    zones: Vec<usize>,
    /// It is as the server has found it to be, with nothing left to be computed before it runs.
    plain: bool,
    /// So is everything that a function is called with.
    parts_plain: bool,
    /// It stands in parentheses of its own.
    wrapped: bool,
    /// It is an array that is written element by element.
    has_elements: bool,
    /// What EXPLAIN writes for it but for its type, if it is one literal.
    written_so: Option<Box<str>>,
}

impl Constant {
    pub(super) const fn literal() -> Self {
        Self {
            parameters: Vec::new(),
            guards: Vec::new(),
            number: None,
            kind: None,
            shown: String::new(),
            written: Written::Same,
            is_rounded: false,
            terms: 1,
            wide: false,
            was_wide: false,
            null_if: None,
            may_fail: false,
            made_of: false,
            work: None,
            near: false,
            clock: false,
            instant: None,
            moved: false,
            lists_made: false,
            zones: Vec::new(),
            plain: true,
            parts_plain: true,
            wrapped: false,
            has_elements: false,
            written_so: None,
        }
    }

    /// A string, as EXPLAIN writes it: with its backslashes as they are (ruleutils.c,
    /// `simple_quote_literal`).
    pub(super) fn string(quoted: &str) -> Self {
        Self {
            written_so: Some(quoted.into()),
            ..Self::literal()
        }
    }

    /// Whether it is a pattern for LIKE that cannot end in its escape character.
    pub(super) fn is_unescaped(&self) -> bool {
        let pattern = self.written_so.as_deref().unwrap_or_default();
        pattern.starts_with('\'') && !pattern.contains('\\')
    }

    /// What EXPLAIN writes for a literal but for its type; `None` if it depends on a parameter, or
    /// is computed while the plan is run. Empty if it is made of several.
    pub(super) fn literally(&self) -> Option<&str> {
        // What begins with a dollar sign is a parameter of the executor's own.
        let written = self.written_so.as_deref().unwrap_or_default();
        let is_own = written.starts_with('$');
        (self.plain && self.parameters.is_empty() && !is_own).then_some(written)
    }

    /// The parameter at this index.
    pub(super) fn parameter(index: usize) -> Self {
        Self {
            parameters: vec![index],
            ..Self::literal()
        }
    }

    /// A literal of the type that EXPLAIN shows so.
    pub(super) fn shown(name: &str) -> Self {
        Self {
            shown: name.to_owned(),
            ..Self::literal()
        }
    }

    /// A token that begins with a digit or a dollar sign.
    pub(super) fn number_or_parameter(token: &str) -> Self {
        let parameter = token
            .strip_prefix('$')
            .and_then(|n| n.parse::<usize>().ok());
        // $0 and some others are the executor's own parameters; they are no argument of anybody's.
        let parameter = parameter.and_then(|number| number.checked_sub(1));
        // Numbers stand without their type only if it is one of these.
        let shown = match token.bytes().all(|byte| byte.is_ascii_digit()) {
            true => "integer",
            false if token.starts_with('$') => "",
            false => "numeric",
        };
        Self {
            parameters: parameter.into_iter().collect(),
            number: token.parse().ok(),
            written_so: Some(token.into()),
            shown: shown.to_owned(),
            ..Self::literal()
        }
    }

    /// `true` or `false`.
    pub(super) fn boolean() -> Self {
        Self {
            shown: "boolean".to_owned(),
            ..Self::literal()
        }
    }

    /// The parameters it is made of, by index.
    pub(super) fn parameters(&self) -> &[usize] {
        &self.parameters
    }

    /// Whether it is made of one parameter in a way that never makes it NULL.
    pub(super) fn is_present(&self) -> bool {
        self.parameters.len() == 1 && self.written != Written::Other
    }

    /// Whether its parameters are used with the values they are given.
    pub(super) const fn is_as_given(&self) -> bool {
        !self.made_of
    }

    /// Whether it is an array that is written element by element: how many there are stands in the
    /// text.
    pub(super) const fn has_elements(&self) -> bool {
        self.has_elements
    }

    /// Whether the server takes it as it is given: not even its type is another.
    pub(super) const fn is_bare(&self) -> bool {
        !self.made_of && self.kind.is_none()
    }

    /// Whether it is what was given, of whatever type: nothing was called for it.
    pub(super) const fn is_given(&self) -> bool {
        !self.made_of && (self.plain || !self.parameters.is_empty())
    }

    /// In the plan of literals: whether nothing about it is left that the planner could try out.
    /// The call itself may be if it `returns` rows.
    pub(super) const fn is_settled(&self, returns: bool) -> bool {
        self.plain || returns && self.work.is_some() && self.parts_plain
    }

    /// Whether both are computed in the same way, as far as they are.
    pub(super) fn is_computed_like(&self, other: &Self) -> bool {
        let is_like = match (&self.work, &other.work) {
            (Some(work), Some(other)) => work.is_like(other),
            (work, other) => work.is_none() && other.is_none(),
        };
        self.plain == other.plain && is_like
    }

    /// It is no argument: the parameters are the executor's own.
    pub(super) fn is_executors(&mut self) {
        *self = Self {
            shown: std::mem::take(&mut self.shown),
            plain: self.plain,
            ..Self::literal()
        };
    }

    /// An array of them. Arrays in it would have to be of one size, and which they are is written
    /// in their values.
    pub(super) fn list(parts: Vec<Self>, types: Types<'_>) -> Self {
        let kinds = parts.iter().map(|part| part.kind(types));
        let has_made = kinds.flatten().any(is_made);
        let has_lists = !parts.iter().all(|part| part.is_single(types));
        let mut list = Self::all(parts);
        list.has_elements = true;
        list.lists_made |= has_made;
        list.may_fail |= has_lists && !list.parameters.is_empty();
        list
    }

    /// Several in one, with nothing done to them.
    fn all(parts: Vec<Self>) -> Self {
        let mut all = Self::literal();
        all.plain = parts.iter().all(|part| part.plain);
        all.parts_plain = all.plain;
        all.written = Written::Other;
        for part in parts {
            all.parameters.extend(part.parameters);
            all.guards.extend(part.guards);
            all.may_fail |= part.may_fail;
            all.made_of |= part.made_of;
            all.clock |= part.clock;
            all.lists_made |= part.lists_made;
            all.was_wide |= part.was_wide;
            all.zones.extend(part.zones);
        }
        all
    }

    /// A function called with them.
    pub(super) fn call(function: &str, mut parts: Vec<Self>, types: Types<'_>) -> Self {
        let texts = [oid::TEXT, oid::VARCHAR, oid::BPCHAR].map(Some);
        let total = TOTAL.contains(&function)
            && matches!(&parts[..], [only] if texts.contains(&only.kind(types)));
        let moment = moment::returned(function, &mut parts, types);
        let instant = Self::instant_of(function).filter(|_| parts.is_empty());
        let (work, is_nested) = Work::from(&parts, &[]);
        let written = match &parts[..] {
            [only] if total => only.written_by(function),
            _ => Written::Other,
        };
        let mut call = Self::all(parts);
        call.written = written;
        call.instant = instant;
        call.made_of = true;
        call.plain = false;
        let counts = matches!(function, "length" | "char_length");
        call.kind = Some(if counts { oid::INT4 } else { oid::TEXT });
        if let Some(moment) = moment {
            call.become_moment(moment);
        } else {
            call.may_fail |= !call.parameters.is_empty() && !total;
        }
        if call.is_left(is_nested) {
            call.work = work.map(|work| work.within(function, ""));
        }
        call
    }

    /// They, joined by operators. A single one in parentheses is itself.
    pub(super) fn operation(mut parts: Vec<Self>, operators: &[&str], types: Types<'_>) -> Self {
        if operators.is_empty()
            && parts.len() == 1
            && let Some(mut only) = parts.pop()
        {
            only.wrapped = true;
            return only;
        }
        let sum = sums::sum(&parts, operators, types);
        let shifted = instant::shifted(&parts, operators, types);
        let (work, is_nested) = Work::from(&parts, operators);
        // Of one operand only the sign is another.
        let (written, is_rounded) = match &parts[..] {
            [only] if sum.is_some() && only.written != Written::Other => {
                (Written::Magnitude, only.is_rounded)
            }
            _ => (Written::Other, false),
        };
        let mut operation = Self::all(parts);
        (operation.written, operation.is_rounded) = (written, is_rounded);
        operation.made_of = true;
        (operation.plain, operation.parts_plain) = (false, false);
        operation.instant = shifted.as_ref().map(|(kind, _)| *kind);
        operation.moved = shifted.is_some();
        if operation.parameters.is_empty() {
            operation.work = work.map(|work| work.within("", ""));
            return operation;
        }
        match (sum, shifted) {
            (Some(sum), _) => operation.become_sum(sum),
            (None, Some((_, guards))) => operation.guards.extend(guards),
            (None, None) => operation.may_fail = true,
        }
        if operation.is_left(is_nested) {
            operation.work = work.map(|work| work.within("", ""));
        }
        operation
    }

    /// Whether what it is called for is left to the execution, rather than nothing that could fail.
    fn is_left(&self, is_nested: bool) -> bool {
        self.parameters.is_empty() || self.is_fallible() || is_nested
    }

    const fn is_fallible(&self) -> bool {
        self.may_fail || !self.zones.is_empty()
    }

    fn kind(&self, types: Types<'_>) -> Option<u32> {
        match self.parameters[..] {
            [only] if self.kind.is_none() => types.get(only).copied(),
            _ => self.kind,
        }
    }

    /// It is computed for each row of the result. If the other plan, `custom`, calls the same
    /// function there, the call is left to the execution in both, and fails or not alike. What it
    /// is called with is not.
    pub(super) fn run_like(&mut self, custom: &Self, types: Types<'_>) -> bool {
        let (Some(work), Some(other)) = (&self.work, &custom.work) else {
            return false;
        };
        if !work.is_like(other) {
            return false;
        }
        self.may_fail = false;
        self.guards.retain(|guard| guard.check != Check::Interval);
        self.zones.clear();
        for leaf in work.clone().leaves_like(other, types) {
            self.may_fail |= leaf.is_fallible();
            self.guards.extend(leaf.guards);
        }
        true
    }

    /// Whether values of users' types are taken for single ones.
    pub(super) const fn lists_made(&self) -> bool {
        self.lists_made
    }

    /// Whether a function of time is taken for the server's own.
    pub(super) const fn tells_time(&self) -> bool {
        self.clock
    }

    /// The arguments that alone keep it from being sure to have a value.
    pub(super) fn zones(&self) -> &[usize] {
        if self.may_fail { &[] } else { &self.zones }
    }

    /// The guards under which nothing about it can fail when it is used behind `operator`; `None`
    /// if there are no such.
    pub(super) fn guards(&self, operator: &str) -> Option<Vec<Guard>> {
        if self.parameters.is_empty() {
            return Some(Vec::new());
        }
        if self.is_fallible() {
            return None;
        }
        let mut guards = self.guards.clone();
        match operator {
            // The planner compiles a constant pattern to estimate it, and so finds it invalid.
            "~" | "~*" | "!~" | "!~*" => return None,
            "~~" | "~~*" | "!~~" | "!~~*" => {
                let check = Check::NoBackslash;
                let parameters = self.parameters.iter();
                guards.extend(parameters.map(|&argument| Guard { argument, check }));
            }
            _ => {}
        }
        Some(guards)
    }
}

#[cfg(test)]
#[path = "constant_tests.rs"]
mod tests;
