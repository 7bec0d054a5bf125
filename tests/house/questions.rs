//! The model's answers to what the proxy asks on its own behalf.

use crate::frames;
use crate::model::Model;
use crate::stage::script::is_about_names;
use crate::statements::{Said, analysed};
use crate::tokens::{shown, spliced};

/// The settings that decide what is converted.
const SETTINGS: [&str; 6] = [
    "array_nulls=on",
    "client_min_messages=notice",
    "default_transaction_isolation=read committed",
    "exit_on_error=off",
    "log_parameter_max_length_on_error=0",
    "plan_cache_mode=auto",
];

const EXPLAIN: &str = "EXPLAIN (VERBOSE, COSTS OFF, FORMAT JSON) ";

/// What cancels the query of the session that sends it.
pub(crate) const CANCEL: &str = "SELECT pg_catalog.pg_cancel_backend(pg_catalog.pg_backend_pid())";

/// What a cancelled statement says.
pub(crate) fn cancelled() -> Vec<u8> {
    frames::error("57014", "canceling statement due to user request")
}

/// The answer to a question of the proxy's; `None` if it is a text of a client's.
pub(crate) fn answer(model: &Model, text: &str) -> Option<Said> {
    let rows: Vec<Vec<u8>> = if text == CANCEL {
        return Some(Err(cancelled()));
    } else if text.contains("SHOW ALL; ") {
        let named = SETTINGS.map(|setting| setting.split_once('=').unwrap());
        let settings = named.map(|(name, value)| frames::row(&[name, value, "why"]));
        let x = frames::row(&["x", &model.course.x().to_string(), "why"]);
        let who = frames::row(&["4194304", "0 70", "7", "1763880000.5", "0", "0", "77"]);
        settings.into_iter().chain([x, who]).collect()
    } else if text.contains("concat_ws('|', (SELECT") {
        vec![frames::row(&["sign", &model.catalog.to_string(), "", "1"])]
    } else if text.contains("n.source OPERATOR") {
        vec![frames::row(&["5", "10", "on", "work_mem=4MB", "t"])]
    } else if is_about_names(text) {
        Vec::new()
    } else if text.contains("; SELECT (SELECT pg_catalog.string_agg")
        || text.contains("; SELECT '', ")
    {
        let columns = ["id", "integer", "name", "text"];
        vec![frames::row(
            &[&["", "0", "0", "0", "0"][..], &columns].concat(),
        )]
    } else if text.contains("; SELECT 'l', ") {
        let facts = [["b", "0", "", ""], ["s", "0", "", ""], ["n", "0", "0", ""]];
        facts.map(|fact| frames::row(&fact)).to_vec()
    } else if let Some((before, explained)) = text.split_once(EXPLAIN) {
        return Some(explain(model, before.contains("force_generic"), explained));
    } else if text.contains("pg_catalog.") {
        panic!("the model does not know the answer to {text}");
    } else {
        return None;
    };
    let count = rows.len();
    let complete = frames::complete(&format!("SELECT {count}"));
    let rows = rows.concat();
    Some(Ok(
        [frames::description(&["a", "b"]), rows, complete].concat()
    ))
}

/// A plan. That of what is prepared is another one for the values of table `apart`, and the generic
/// one of table `custom`.
fn explain(model: &Model, generic: bool, text: &str) -> Said {
    let mut node = "Result";
    let text = match text.strip_prefix("EXECUTE ") {
        None => text.trim_end_matches(';').to_owned(),
        Some(call) => {
            let (name, arguments) = call.split_once('(').unwrap_or((call, ")"));
            let Some(prepared) = model.prepared.get(name) else {
                return Err(frames::error("26000", "prepared statement does not exist"));
            };
            let other = if generic {
                ["custom", "apart"]
            } else {
                ["apart"; 2]
            };
            if other.iter().any(|table| prepared.text.contains(table)) {
                node = "Append";
            }
            let arguments: Vec<&str> = arguments.trim_end_matches(')').split(',').collect();
            match generic {
                true => prepared.text.clone(),
                false => spliced(&prepared.text, |n| arguments[n - 1].trim().to_owned()),
            }
        }
    };
    analysed(&text)?;
    let output = shown(&text);
    let plan = format!(r#"[{{"Plan": {{"Node Type": "{node}", "Output": ["{output}"]}}}}]"#);
    let row = frames::row(&[&plan]);
    let described = frames::description(&["QUERY PLAN"]);
    Ok([described, row, frames::complete("EXPLAIN")].concat())
}
