//! What was written about what is logged, checked.

use super::{Effective, Error, LogFormat, refuse, settings};

impl Effective {
    pub(super) fn log_format(&self) -> Result<LogFormat, Error> {
        Ok(match self.text(&settings::LOG_FORMAT)? {
            "json" => LogFormat::Json,
            _ => LogFormat::Text,
        })
    }

    /// The log filter, if `EnvFilter` reads it as the user meant it.
    pub(super) fn log_level(&self) -> Result<String, Error> {
        let setting = &settings::LOG_LEVEL;
        let text = self.text(setting)?;
        let written = self.written(setting)?;
        let levels = ["off", "error", "warn", "info", "debug", "trace"];
        // EnvFilter takes any other word for a module, and would log nothing but that module.
        let clear = text.split(',').all(|part| {
            part.contains(['=', '[']) || levels.contains(&part.trim().to_lowercase().as_str())
        });
        if !clear {
            let expected = format!(
                "{}, or a filter such as info,pgautoprep=debug",
                levels.join(", ")
            );
            return Err(refuse(setting, written, expected, text));
        }
        match tracing_subscriber::EnvFilter::try_new(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => {
                let expected = format!("a filter such as info,pgautoprep=debug ({error})");
                Err(refuse(setting, written, expected, text))
            }
        }
    }
}
