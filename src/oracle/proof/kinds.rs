//! The kinds of nodes of a plan, as EXPLAIN names them (`explain.c`), by what they can do.

/// Nodes that read one of the tables of the query.
pub(super) const TABLE_SCANS: [&str; 4] = [
    "Seq Scan",
    "Index Scan",
    "Index Only Scan",
    "Bitmap Heap Scan",
];

/// Nodes below a "Bitmap Heap Scan", whose conditions it repeats.
pub(super) const BITMAPS: [&str; 3] = ["Bitmap Index Scan", "BitmapAnd", "BitmapOr"];

/// Nodes that give at most one row if those below them do, and read nothing by themselves.
pub(super) const SINGLE: [&str; 15] = [
    "Result",
    "Limit",
    "Sort",
    "Incremental Sort",
    "Unique",
    "Group",
    "Aggregate",
    "WindowAgg",
    "Materialize",
    "Memoize",
    "Hash",
    "LockRows",
    "Subquery Scan",
    "CTE Scan",
    "ModifyTable",
];

/// Nodes that join, and the kinds of joins that give at most one row of one and one.
pub(super) const JOINS: [&str; 3] = ["Nested Loop", "Hash Join", "Merge Join"];
pub(super) const SINGLE_JOINS: [&str; 7] = [
    "Inner",
    "Left",
    "Right",
    "Semi",
    "Anti",
    "Right Semi",
    "Right Anti",
];

/// Nodes with which there is nothing to choose, if at most one of them is a scan.
pub(super) const ONLY_WAYS: [&str; 6] = [
    "Result",
    "Limit",
    "ProjectSet",
    "Values Scan",
    "Function Scan",
    "ModifyTable",
];

/// Nodes that run equal calls once; neither how often nor with which values is shown.
pub(super) const SHARING: [&str; 3] = ["Aggregate", "ProjectSet", "WindowAgg"];
