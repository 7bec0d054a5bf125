//! What all theorems rest on: that what has the name of the server's own is its own.

use super::constant::{CLOCKS, INSTANTS, TOTAL};
use crate::oracle::catalog::quoted;

/// The first OID that is a user's. It says of types alone who made them: what is made before the
/// server's first start as such, in single-user mode, has OIDs from [`MADE`] on, in any schema.
pub(super) const USERS: &str = "16384::pg_catalog.oid";

/// The first OID that the server gives by itself: those below are in the file it is made from, and
/// nothing that is made later gets one, not even by pg_upgrade.
pub(super) const MADE: &str = "12000::pg_catalog.oid";

/// Types that are relied on and that a plan shows by no more than their names, unlike those that
/// have a keyword.
const TYPES: [&str; 2] = ["inet", "text"];

/// Asks whether all operators, functions, casts and types that look like the server's own are (fact
/// `b`). What stands behind CASE the planner does not estimate.
pub(super) fn built_in() -> String {
    format!(
        "SELECT 'b', '0', '', '' WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_operator o \
         WHERE CASE WHEN o.oid OPERATOR(pg_catalog.<) {MADE} THEN false \
         ELSE o.oprname OPERATOR(pg_catalog.=) ANY ('{{=,<>,<,<=,>,>=}}'::pg_catalog.name[]) \
         AND (o.oprleft OPERATOR(pg_catalog.<) {USERS} \
         OR o.oprright OPERATOR(pg_catalog.<) {USERS}) \
         OR o.oprname OPERATOR(pg_catalog.=) ANY ('{{+,-,<<}}'::pg_catalog.name[]) \
         AND o.oprleft OPERATOR(pg_catalog.=) ANY ('{{0,20,21,23}}'::pg_catalog.oid[]) \
         AND o.oprright OPERATOR(pg_catalog.=) ANY ('{{20,21,23}}'::pg_catalog.oid[]) END) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_proc f \
         WHERE f.proname OPERATOR(pg_catalog.=) ANY ({total}) \
         AND f.oid OPERATOR(pg_catalog.>=) {MADE}) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_cast k \
         WHERE k.oid OPERATOR(pg_catalog.>=) {MADE} \
         AND k.castsource OPERATOR(pg_catalog.<) {USERS} \
         AND k.casttarget OPERATOR(pg_catalog.<) {USERS}) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_type y \
         WHERE y.typname OPERATOR(pg_catalog.=) ANY ({types}) \
         AND y.oid OPERATOR(pg_catalog.>=) {MADE}); ",
        total = array(&TOTAL),
        types = array(&TYPES),
    )
}

/// Asks the same of what matches patterns (fact `l`).
pub(super) fn patterns() -> String {
    format!(
        "; SELECT 'l', '0', '', '' WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_operator o \
         WHERE o.oprname OPERATOR(pg_catalog.=) \
         ANY ('{{~~,!~~,~~*,!~~*}}'::pg_catalog.name[]) \
         AND o.oprleft OPERATOR(pg_catalog.<) {USERS} \
         AND o.oid OPERATOR(pg_catalog.>=) {MADE})"
    )
}

/// Asks whether the relation with this OID, which the text names, is a table (fact `r`). Nothing is
/// locked by looking.
pub(super) fn is_table(index: usize, oid: &str) -> String {
    format!(
        "; SELECT 'r', '{index}', '', '' FROM pg_catalog.pg_class t \
         WHERE t.oid OPERATOR(pg_catalog.=) {oid}::pg_catalog.oid \
         AND t.relkind OPERATOR(pg_catalog.=) ANY ('{{r,p}}'::pg_catalog.\"char\"[])"
    )
}

/// Asks the same of functions of time, and of adding to it (fact `t`).
pub(super) fn clocks() -> String {
    format!(
        "; SELECT 't', '0', '', '' WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_proc f \
          WHERE f.proname OPERATOR(pg_catalog.=) ANY ({clocks}) \
          AND f.oid OPERATOR(pg_catalog.>=) {MADE} \
          AND pg_catalog.pg_function_is_visible(f.oid)) \
          AND NOT EXISTS (SELECT FROM pg_catalog.pg_operator o \
          WHERE CASE WHEN o.oid OPERATOR(pg_catalog.<) {MADE} THEN false \
          ELSE o.oprname OPERATOR(pg_catalog.=) ANY ('{{+,-}}'::pg_catalog.name[]) \
          AND o.oprleft OPERATOR(pg_catalog.=) ANY ('{{1082,1114,1184}}'::pg_catalog.oid[]) \
          AND o.oprright OPERATOR(pg_catalog.=) \
          ANY ('{{20,21,23,1186}}'::pg_catalog.oid[]) END)",
        clocks = array(&[&CLOCKS[..], &INSTANTS].concat())
    )
}

/// Asks whether nothing but itself is made of the values of these types of users without being told
/// to, in a way that may fail (fact `m`): plans do not show such casts, and say of a type no more
/// than its name. Of an array its elements are cast, of a domain what it is over. If they are made
/// a list, none of them may be an array.
pub(super) fn casts(made: &[u32], are_listed: bool) -> String {
    let made: Vec<String> = made.iter().map(u32::to_string).collect();
    let made = format!("'{{{}}}'::pg_catalog.oid[]", made.join(","));
    let lists = match are_listed {
        true => format!(
            " AND NOT EXISTS (SELECT FROM pg_catalog.pg_type y \
             WHERE y.oid OPERATOR(pg_catalog.=) ANY ({made}) \
             AND y.typcategory OPERATOR(pg_catalog.=) 'A'::pg_catalog.\"char\")"
        ),
        false => String::new(),
    };
    format!(
        "; SELECT 'm', '0', '', '' WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_type y \
         JOIN pg_catalog.pg_cast k ON k.castsource OPERATOR(pg_catalog.=) \
         ANY (ARRAY[y.oid, y.typelem, y.typbasetype]) \
         WHERE y.oid OPERATOR(pg_catalog.=) ANY ({made}) \
         AND k.castcontext OPERATOR(pg_catalog.<>) 'e'::pg_catalog.\"char\" \
         AND k.castmethod OPERATOR(pg_catalog.<>) 'b'::pg_catalog.\"char\" \
         AND k.oid OPERATOR(pg_catalog.>=) {MADE}){lists}"
    )
}

/// An array of names.
pub(super) fn array(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
    format!("ARRAY[{}]::pg_catalog.name[]", names.join(", "))
}
