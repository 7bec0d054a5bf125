//! Settings that say by which way a statement goes to the server.

use super::{Setting, ValueForm};

/// `trials`: whether it is measured that conversions pay.
pub const TRIALS: Setting = Setting {
    key: "trials",
    kind: ValueForm::Switch,
    default: Some("on"),
    what: "Whether each statement is now and then sent as it came, to compare the times; one that \
           takes longer as a prepared statement is left as it came.",
    because: "not every server and not every statement gains, and nobody should lose; the trials \
              take about a hundredth of a statement's time.",
};

/// `deferred_begin`: whether BEGIN rides with what follows it.
pub const DEFERRED_BEGIN: Setting = Setting {
    key: "deferred_begin",
    kind: ValueForm::Switch,
    default: Some("on"),
    what: "Whether a plain BEGIN is answered at once and sent with the statement behind it, or \
           alone a millisecond or two later.",
    because: "it spares each transaction one of its round trips to the server; what that \
              moves is now(), by the time the client takes for its next statement.",
};

/// `unlocked_reads`: whether transactions that only read are kept from the server.
pub const UNLOCKED_READS: Setting = Setting {
    key: "unlocked_reads",
    kind: ValueForm::Switch,
    default: Some("off"),
    what: "Whether the reads of a transaction that has only read run as reads outside of one do, \
           which takes shared_reads and deferred_begin: the server hears of the transaction when \
           something else comes in it, or after a second.",
    because: "until then it holds no locks and is not seen, so that other sessions can change and \
              drop what it has read, which they would have to wait with; the clients gain as those \
              that use no transactions.",
};

/// `shared_reads`: whether reads may run on other sessions' server connections.
pub const SHARED_READS: Setting = Setting {
    key: "shared_reads",
    kind: ValueForm::Choice(&["off", "prove", "on"]),
    default: Some("on"),
    what: "Whether reads may run on the server connection of another session, many clients' reads \
           on few connections; prove asks the server which could, and counts them.",
    because: "it takes the server less time where many clients read little, only what the server \
              proves to give the same answer runs elsewhere, and a client that is alone notices \
              nothing; the server's own views and its log then show such a read on a connection \
              that is not its client's.",
};
