//! The report as one page that needs nothing else: no script, no font, no picture.

use std::fmt::Write;

use super::report::{Report, Table};
use crate::lab::markup::escape;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{margin:0 auto;padding:1rem;max-width:72rem;font:15px/1.5 system-ui,sans-serif;\
font-variant-numeric:tabular-nums}\
h1{font-size:1.35rem}h2{font-size:1.05rem;margin-top:2rem}\
div{overflow-x:auto}table{border-collapse:collapse}\
th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;\
border-bottom:1px solid #8885}";

/// The page.
pub(super) fn page(report: &Report) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>pgautoprep: advice</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>pgautoprep: advice</h1>\n<p>{}</p>\n",
        escape(&report.head)
    );
    for table in &report.tables {
        put(&mut out, table);
    }
    out.push_str("</body>\n</html>\n");
    out
}

fn put(out: &mut String, table: &Table) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "<h2>{}</h2>", escape(table.title));
    if !table.rows.is_empty() {
        out.push_str("<div><table>\n<thead><tr>");
        for column in table.columns {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(column));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &table.rows {
            let cells: String = row
                .iter()
                .map(|it| format!("<td>{}</td>", escape(it)))
                .collect();
            let _ = writeln!(out, "<tr>{cells}</tr>");
        }
        out.push_str("</tbody>\n</table></div>\n");
    }
    for note in &table.notes {
        let _ = writeln!(out, "<p>{}</p>", escape(note));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_statement_says_is_no_markup() {
        let report = Report {
            head: "1 & 2".to_owned(),
            tables: vec![Table {
                title: "t",
                columns: &["text"],
                rows: vec![vec!["SELECT \"<script>\" WHERE a < b".to_owned()]],
                notes: vec!["it's".to_owned()],
            }],
        };
        let page = page(&report);
        let row = "<tr><td>SELECT &quot;&lt;script&gt;&quot; WHERE a &lt; b</td></tr>";
        for part in ["<p>1 &amp; 2</p>", row, "<p>it's</p>"] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert!(!page.contains("<script"));
    }
}
