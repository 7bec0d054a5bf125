//! The settings about the console. Their names are `PgBouncer`'s, and so is what they mean.

use super::{Setting, ValueForm};

/// `admin_users`: who may do everything at the console.
pub const ADMIN_USERS: Setting = Setting {
    key: "admin_users",
    kind: ValueForm::Names,
    default: Some(""),
    what: "The users, separated by commas, who may look at the console, which is the database \
           pgautoprep or pgbouncer of the proxy's own, and give it commands that change \
           something; if neither this nor stats_users names anybody, there is none.",
    because: "a database of the server's may have such a name, and nobody has said who may end the \
              clients of others.",
};

/// `switches_file`: where is kept what was switched off.
pub const SWITCHES_FILE: Setting = Setting {
    key: "switches_file",
    kind: ValueForm::Text("PATH"),
    default: Some(""),
    what: "The file in which SET MODE off FOR SHAPE at the console is kept, so that it holds \
           after a restart. The proxy writes it anew, beside it first, so it must be able to \
           write in its folder; one that is not there yet is empty.",
    because: "the proxy writes no files unless it is told where.",
};

/// `stats_users`: who may look at the console.
pub const STATS_USERS: Setting = Setting {
    key: "stats_users",
    kind: ValueForm::Names,
    default: Some(""),
    what: "The users, separated by commas, who may look at the console, and change nothing.",
    because: "the console shows who is connected from where, and what statements look like.",
};
