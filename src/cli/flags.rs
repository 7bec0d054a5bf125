//! The settings as command line flags, made from the list of settings.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};

use crate::config::settings::{CONFIG_VARIABLE, SETTINGS, Setting, ValueForm};
use crate::config::{Sources, usage};

/// The flags of every setting, and `--config`. Flatten it into a command that needs a
/// configuration, and hand [`SettingFlags::sources`] to `Config::load`.
#[derive(Debug, Clone)]
pub struct SettingFlags {
    given: Vec<(Setting, Vec<String>)>,
    file: Option<PathBuf>,
}

impl SettingFlags {
    /// These flags, but with this value of one of them.
    #[must_use]
    pub fn with(mut self, setting: Setting, value: &str) -> Self {
        self.given.retain(|(given, _)| given.key != setting.key);
        self.given.push((setting, vec![value.to_owned()]));
        self
    }

    /// The flags, together with the environment and the configuration file they name.
    #[must_use]
    pub fn sources(self) -> Sources {
        Sources::from_process(self.given, self.file)
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let file = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help(format!("Configuration file [variable: {CONFIG_VARIABLE}]"));
        SETTINGS
            .iter()
            .map(flag)
            .fold(command.arg(file), Command::arg)
            .after_help(usage::table())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let texts = |setting: &Setting| Some(matches.get_many(setting.key)?.cloned().collect());
        let given = SETTINGS
            .iter()
            .filter_map(|setting| Some((*setting, texts(setting)?)));
        Ok(Self {
            given: given.collect(),
            file: matches.get_one("config").cloned(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flag of one setting. Its value stays text: flags, variables and files are checked by the
/// same code, with the same messages.
fn flag(setting: &Setting) -> Arg {
    let (name, action) = match setting.kind {
        ValueForm::Addresses => (String::from("ADDRESS"), ArgAction::Append),
        ValueForm::Names => (String::from("NAMES"), ArgAction::Set),
        ValueForm::Text(form) => (form.to_owned(), ArgAction::Set),
        ValueForm::Choice(words) => (words.join("|"), ArgAction::Set),
        ValueForm::Integer { min, max } => (format!("{min}..{max}"), ArgAction::Set),
        ValueForm::Switch => (String::from("on|off"), ArgAction::Set),
    };
    let default = match setting.default {
        Some(_) => format!("Default {}, because", setting.shown_default()),
        None => String::from("Required:"),
    };
    Arg::new(setting.key)
        .long(setting.flag())
        .value_name(name)
        .action(action)
        .allow_hyphen_values(matches!(setting.kind, ValueForm::Integer { .. }))
        .help(setting.what)
        .long_help(format!("{}\n{default} {}", setting.what, setting.because))
}
