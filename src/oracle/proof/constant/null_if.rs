//! `NULLIF` of two texts, and what is cast to an address or a whole number unless it is empty.
//!
//! Equality of texts has a result for any two (`texteq`), if it is the server's own, as the type is
//! to be that is called `inet` (fact `b` of the [proof](super::super)). `NULLIF(…, '')::inet` is
//! how FreeRADIUS writes an address that it may not have, and `NULLIF(…, '')::bigint` a number: of
//! literals the planner makes the address or the number and says what is wrong with it before
//! anything runs (`network_in` in `network.c`, `int8in` in `int8.c`).

use super::work::Work;
use super::{Constant, Types};
use crate::sql::oid;
use crate::statement::guard::{Check, Guard};

impl Constant {
    /// NULLIF of them.
    pub(in crate::oracle::proof) fn null_if(parts: Vec<Self>, types: Types<'_>) -> Self {
        let is_text = |part: &Self| part.kind(types) == Some(oid::TEXT);
        let are_texts = parts.len() == 2 && parts.iter().all(is_text);
        let given = |part: &Self| match part.parameters[..] {
            // Bind counts its parameters in 16 bits.
            [argument] if part.is_bare() => u16::try_from(argument).ok(),
            _ => None,
        };
        let pair = match &parts[..] {
            [one, other] if are_texts => given(one).zip(given(other)),
            _ => None,
        };
        let (work, is_nested) = Work::from(&parts, &[]);
        let mut call = Self::all(parts);
        (call.made_of, call.plain) = (true, false);
        call.kind = Some(oid::TEXT);
        call.may_fail |= !call.parameters.is_empty() && !are_texts;
        call.null_if = pair.map(|(one, other)| [one, other]);
        if call.is_left(is_nested) {
            call.work = work.map(|work| work.within("NULLIF", ""));
        }
        call
    }

    /// Casts the first of two arguments to an address or a whole number, if it is one whenever it
    /// is not empty, which the other must be; false if nothing is known of that.
    pub(super) fn becomes_unless_empty(&mut self, name: &str) -> bool {
        let Some([value, empty]) = self.null_if.take() else {
            return false;
        };
        let (check, kind) = match name {
            "inet" => (Check::Address, oid::INET),
            "smallint" => (
                Check::WholeOrEmpty(i16::MAX.unsigned_abs().into()),
                oid::INT2,
            ),
            "integer" => (
                Check::WholeOrEmpty(i32::MAX.unsigned_abs().into()),
                oid::INT4,
            ),
            "bigint" => (Check::WholeOrEmpty(i64::MAX.unsigned_abs()), oid::INT8),
            _ => return false,
        };
        let guard = |argument: u16, check| Guard {
            argument: argument.into(),
            check,
        };
        self.guards.push(guard(value, check));
        self.guards.push(guard(empty, Check::Empty));
        self.kind = Some(kind);
        name.clone_into(&mut self.shown);
        true
    }
}
