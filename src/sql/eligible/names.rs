//! Names that decide what may happen to a literal next to them.

use crate::reason::Reason;

/// Types of pg_catalog whose input depends on nothing but the literal and the catalogs' fixed part.
const STABLE_TYPES: &str = "\
    aclitem bit bool boolean box bpchar bytea char character cid cidr circle decimal double \
    float float4 float8 inet int int2 int4 int4multirange int4range int8 int8multirange \
    int8range integer json jsonb jsonpath line lseg macaddr macaddr8 name numeric nummultirange \
    numrange oid oidvector path pg_lsn point polygon precision real smallint bigint text tid \
    tsquery tsvector uuid varbit varchar varying xid xid8 xml";

/// Types of pg_catalog whose input depends on settings, all of which are part of the context a
/// statement belongs to (DateStyle, IntervalStyle, TimeZone, lc_monetary), and otherwise only on
/// the words in [`VOLATILE`].
const SETTING_TYPES: &str = "\
    date datemultirange daterange interval money time timestamp timestamptz tsmultirange tsrange \
    tstzmultirange tstzrange";

/// Types of pg_catalog whose input depends on the clock or on what the catalogs hold. A `timetz`
/// with a zone's name depends on whether daylight saving time is in force today.
const UNSTABLE_TYPES: &str = "\
    abstime anyarray anyelement anyenum anymultirange anynonarray anyrange cstring gtsvector \
    int2vector internal pg_node_tree pg_snapshot record refcursor regclass regcollation regconfig \
    regdatabase regdictionary regnamespace regoper regoperator regproc regprocedure regrole \
    regtype reltime timetz tinterval trigger txid_snapshot unknown void";

/// Words that may stand before `('literal')` and name no type: keywords, and functions that no sane
/// schema has a type beside.
const ORDINARY: &str = "\
    abs all and any array array_agg as ascii between bit_length btrim by case cast char_length \
    character_length coalesce concat count crypt currval decode distinct else encode escape \
    except exists filter format from greatest grouping hashtext having host ilike in initcap \
    intersect is json_agg json_array_elements json_build_array json_build_object json_each \
    json_each_text jsonb_agg jsonb_array_elements jsonb_array_elements_text jsonb_build_array \
    jsonb_build_object jsonb_each jsonb_each_text jsonb_object_keys jsonb_typeof least length \
    like limit lower ltrim materialized max md5 min nextval not nullif octet_length offset on \
    only or over partition pg_get_userbyid pg_typeof phraseto_tsquery placing plainto_tsquery \
    position quote_ident quote_literal recursive returning reverse row rtrim select set sha256 \
    sha512 similar some string_agg substring sum symmetric then to to_json to_jsonb to_regclass \
    to_regtype to_tsquery to_tsvector treat trim unaccent union unnest upper using values \
    variadic websearch_to_tsquery when where window with within";

/// Fields of an interval type, which change how its literals are read (H-04).
const INTERVAL_FIELDS: &str = "year month day hour minute second";

/// Names whose mere mention sends the text through untouched.
const FORBIDDEN: &[(&str, Reason)] = &[
    ("cmax", Reason::Introspection),
    ("cmin", Reason::Introspection),
    ("current_query", Reason::Introspection),
    ("pg_cursor", Reason::Introspection),
    ("pg_cursors", Reason::Introspection),
    ("pg_prepared_statement", Reason::Introspection),
    ("pg_prepared_statements", Reason::Introspection),
    ("pg_stat_activity", Reason::Introspection),
    ("pg_stat_get_activity", Reason::Introspection),
    ("pg_stat_get_backend_activity", Reason::Introspection),
    ("statement_timestamp", Reason::ProtocolSensitive),
    // Values that went through a parameter may have shorter headers.
    ("pg_column_size", Reason::ProtocolSensitive),
    ("set_config", Reason::SessionEffect),
];

/// Date and time input that means something else later.
const VOLATILE: &str = "now today tomorrow yesterday";

/// How a type's input behaves when a literal of it is kept in a cached statement (H-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Stable,
    Unstable,
    Unknown,
}

/// What is known of the type called `name`, which is in lower case unless it was quoted.
pub(super) fn type_input(name: &str) -> Input {
    // An array's type is its element's with an underscore before it.
    let name = name.strip_prefix('_').unwrap_or(name);
    if has(STABLE_TYPES, name) || has(SETTING_TYPES, name) {
        Input::Stable
    } else if has(UNSTABLE_TYPES, name) {
        Input::Unstable
    } else {
        Input::Unknown
    }
}

/// Whether a list of words separated by spaces has this one.
fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// Whether `name('literal')` is surely no cast.
pub(super) fn is_ordinary(name: &str) -> bool {
    has(ORDINARY, name)
}

/// Whether this keyword stands before an expression: a string behind it is no typed literal.
///
/// Other words before a string are types, or the parser reports no value there.
pub(super) fn introduces_expression(word: &str) -> bool {
    const WORDS: &str = "\
        all and any array as asymmetric between both by case distinct else escape except for \
        from having ilike in intersect is leading like limit not offset on or over placing \
        returning select set similar some symmetric then to trailing union using values variadic \
        when where zone";
    has(WORDS, word)
}

/// Whether this word may link expressions or selects into a chain, which the parser nests.
pub(super) fn chains(word: &str) -> bool {
    const WORDS: &str = "\
        and or not is in like ilike similar between union except intersect at collate isnull \
        notnull case select overlaps join";
    has(WORDS, &word.to_ascii_lowercase())
}

/// Whether this word behind `interval` is a field.
pub(super) fn is_interval_field(word: &str) -> bool {
    has(INTERVAL_FIELDS, &word.to_ascii_lowercase())
}

/// Whether the mention of this identifier, quoted or not, forbids the text, and why.
pub(super) fn forbidden(identifier: &str) -> Option<Reason> {
    let name = identifier.trim_matches('"');
    FORBIDDEN
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known))
        .map(|(_, reason)| *reason)
}

/// Whether a string says one of the words that stand for a moment.
pub(super) fn is_volatile(content: &[u8]) -> bool {
    content
        .split(|byte| !byte.is_ascii_alphabetic())
        .any(|word| {
            VOLATILE
                .split(' ')
                .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
        })
}
