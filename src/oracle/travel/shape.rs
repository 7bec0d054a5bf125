//! What the plan shows: the server's own proof, or why the server cannot give one.

use serde_json::Value;

/// The plan of a read that was to be put below a Gather.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shape {
    /// It was: a single worker runs all of it.
    pub(super) is_whole: bool,
    /// It was not, and what forbids it is how the plan is built, and not what is called in it: all
    /// nodes are such as only read and compute, and one is of a kind that the server never gives a
    /// worker as a whole. Whether functions are called that a worker must not run it does not say.
    pub(super) is_known: bool,
}

/// Nodes that read tables or compute, without an effect (`explain.c`).
const PURE: [&str; 30] = [
    "Aggregate",
    "Append",
    "Bitmap Heap Scan",
    "Bitmap Index Scan",
    "BitmapAnd",
    "BitmapOr",
    "CTE Scan",
    "Function Scan",
    "Group",
    "Hash",
    "Hash Join",
    "Incremental Sort",
    "Index Only Scan",
    "Index Scan",
    "Limit",
    "Materialize",
    "Memoize",
    "Merge Append",
    "Merge Join",
    "Nested Loop",
    "ProjectSet",
    "Recursive Union",
    "Result",
    "Seq Scan",
    "SetOp",
    "Sort",
    "Subquery Scan",
    "Unique",
    "Values Scan",
    "WindowAgg",
];

/// Nodes that only see all rows together, or rows of their own process.
const UNDIVIDED: [&str; 4] = ["CTE Scan", "Recursive Union", "SetOp", "WindowAgg"];

/// Of what is left, the rows that a recursion is at.
const WORK_TABLE: &str = "WorkTable Scan";

impl Shape {
    /// Reads the answer to an EXPLAIN in JSON; `None` if it is no one plan.
    pub(super) fn of(text: &str) -> Option<Self> {
        let Ok(Value::Array(trees)) = serde_json::from_str::<Value>(text) else {
            return None;
        };
        let [tree] = &trees[..] else {
            return None;
        };
        let root = tree.get("Plan")?;
        let is = |name, value| root.get(name) == Some(&value);
        let mut is_undivided = false;
        let is_pure = walk(root, &mut is_undivided);
        Some(Self {
            is_whole: is("Node Type", Value::from("Gather"))
                && is("Single Copy", Value::from(true))
                && is("Workers Planned", Value::from(1)),
            is_known: is_pure && is_undivided,
        })
    }
}

/// Whether all nodes of this tree are pure; notes whether one is of a kind that no worker is given.
fn walk(node: &Value, is_undivided: &mut bool) -> bool {
    let text = |name| node.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, relation) = (text("Node Type"), text("Parent Relationship"));
    // Queries in expressions: one that is run once comes to a worker with its value since 17, one
    // that is run for each row never.
    *is_undivided |= UNDIVIDED.contains(&kind) || matches!(relation, "SubPlan" | "InitPlan");
    let below = match node.get("Plans") {
        Some(Value::Array(below)) => &below[..],
        Some(_) => return false,
        None => &[],
    };
    let is_pure = PURE.contains(&kind) || kind == WORK_TABLE;
    is_pure && below.iter().all(|node| walk(node, is_undivided))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROOF: &str = r#""Node Type": "Gather", "Workers Planned": 1, "Single Copy": true"#;

    fn plan(root: &str) -> String {
        format!("[{{\"Plan\": {{{root}}}}}]")
    }

    fn is_whole(text: &str) -> bool {
        Shape::of(text).is_some_and(|shape| shape.is_whole)
    }

    #[test]
    fn only_the_servers_own_proof_counts_as_one() {
        assert!(is_whole(&plan(PROOF)));
        for other in [
            plan(&PROOF.replace("true", "false")),
            plan(&PROOF.replace('1', "2")),
            plan(&PROOF.replace("Gather", "Gather Merge")),
            plan(r#""Node Type": "Gather", "Workers Planned": 1"#),
            plan(&format!(r#""Node Type": "Limit", "Plans": [{{{PROOF}}}]"#)),
            plan(PROOF).replace("Plan\"", "Plans\""),
            "[]".to_owned(),
            "[1]".to_owned(),
            String::new(),
            format!("[{0}, {0}]", &plan(PROOF)[1..plan(PROOF).len() - 1]),
        ] {
            assert!(!is_whole(&other), "{other}");
        }
    }

    #[test]
    fn it_is_known_why_there_is_no_proof() {
        let is_known = |root: &str| Shape::of(&plan(root)).is_some_and(|shape| shape.is_known);
        let above =
            |kind: &str, below: &str| format!(r#""Node Type": "{kind}", "Plans": [{{{below}}}]"#);
        let scan = r#""Node Type": "Seq Scan""#;
        let part = r#""Node Type": "Index Scan", "Parent Relationship": "SubPlan""#;
        assert!(is_known(&above("WindowAgg", scan)));
        assert!(is_known(&above("Sort", &above("CTE Scan", scan))));
        assert!(is_known(&above("Seq Scan", part)));
        assert!(!is_known(scan) && !is_known(&above("Limit", scan)));
        assert!(!is_known(PROOF));
        for kind in [
            "LockRows",
            "ModifyTable",
            "Foreign Scan",
            "Custom Scan",
            "Gather",
            "Sample Scan",
            "Table Function Scan",
            "Something New",
        ] {
            let below = format!(r#""Node Type": "{kind}""#);
            assert!(!is_known(&above("WindowAgg", &below)), "{kind}");
            assert!(!is_known(&above(kind, part)), "{kind}");
        }
        assert!(!is_known(r#""Node Type": "WindowAgg", "Plans": 1"#));
    }
}
