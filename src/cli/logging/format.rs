//! How lines look, as text or JSON, which may change while lines are written.

use crate::config::LogFormat;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, Format, Full, Json, JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, format};
use tracing_subscriber::registry::LookupSpan;

/// Which of the two it is now.
#[derive(Debug, Clone)]
pub(super) struct Look(Arc<AtomicBool>);

impl Look {
    pub(super) fn new(format: LogFormat) -> Self {
        let look = Self(Arc::default());
        look.set(format);
        look
    }

    /// From the next line on they look like this.
    pub(super) fn set(&self, format: LogFormat) {
        self.0.store(format == LogFormat::Json, Relaxed);
    }

    pub(super) fn is_json(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Writes whole lines.
#[derive(Debug)]
pub(super) struct Lines {
    look: Look,
    text: Format<Full>,
    json: Format<Json>,
}

impl Lines {
    pub(super) fn new(look: Look) -> Self {
        Self {
            look,
            text: format(),
            json: format().json().flatten_event(true),
        }
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        match self.look.is_json() {
            true => self.json.format_event(context, writer, event),
            false => self.text.format_event(context, writer, event),
        }
    }
}

/// Writes what a line tells beside its message.
#[derive(Debug)]
pub(super) struct Fields {
    look: Look,
    text: DefaultFields,
    json: JsonFields,
}

impl Fields {
    pub(super) fn new(look: Look) -> Self {
        Self {
            look,
            text: DefaultFields::new(),
            json: JsonFields::new(),
        }
    }
}

impl<'w> FormatFields<'w> for Fields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        match self.look.is_json() {
            true => self.json.format_fields(writer, fields),
            false => self.text.format_fields(writer, fields),
        }
    }
}
