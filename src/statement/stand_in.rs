//! The parameter of a statement that has no arguments.
//!
//! A statement that has no parameters at all is planned once and for all (`choose_custom_plan` in
//! `plancache.c`), while its original is planned each time. So it is declared to have one, which
//! its text does not use, and NULL is bound to it: then it is planned as others are. The server
//! takes parameters that are declared and not used (`parse_analyze_varparams` asks for their types
//! only).

use super::Statement;
use crate::sql::oid;

/// Its type.
const TYPES: [u32; 1] = [oid::INT4];

impl Statement {
    /// The parameter types to declare: those of the arguments, or else that of what stands in for
    /// them.
    #[must_use]
    pub fn parameters(&self) -> &[u32] {
        match self.oids().is_empty() {
            true => &TYPES,
            false => self.oids(),
        }
    }

    /// The types of the arguments, of all parameter types that the server has told; `None` if these
    /// are not as many as were declared.
    #[must_use]
    pub fn types_of<'a>(&self, parameters: &'a [u32]) -> Option<&'a [u32]> {
        match self.oids().is_empty() {
            true => (parameters == TYPES).then_some(&[]),
            false => (parameters.len() == self.oids().len()).then_some(parameters),
        }
    }
}
