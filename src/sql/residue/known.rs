//! The words behind which a parenthesis is no call that could leave something.

use super::is_in;
use std::cmp::Ordering;

/// Words of the language and names of types, behind which a parenthesis is no call.
const KEYWORDS: &str = "\
    all analyze and any array as asc between bigint bit bool boolean bpchar by bytea case cast \
    char character conflict current_time current_timestamp date dec decimal delete desc \
    distinct do else end except exists explain filter float float4 float8 for from full group \
    having ilike in inner insert int int2 int4 int8 integer intersect interval into is join \
    json jsonb lateral left like limit localtime localtimestamp materialized not numeric \
    offset on only or order outer over overlay partition position recursive returning right \
    row select set sets similar smallint some symmetric text then time timestamp timestamptz \
    timetz to union update using uuid values varbit varchar varying when where window with \
    within";

/// Functions of `pg_catalog` that compute or read, and whose run leaves nothing that anybody could
/// tell. `random` takes its seed from the system, unless somebody has set it.
const FUNCTIONS: &str = "\
    abbrev abs acos acosd acosh age any_value area array_agg array_append array_cat array_dims \
    array_fill array_length array_lower array_ndims array_position array_positions array_prepend \
    array_remove array_replace array_reverse array_sample array_shuffle array_sort array_to_json \
    array_to_string array_upper ascii asin asind asinh atan atan2 atan2d atand atanh avg bit_and \
    bit_count bit_length bit_or bit_xor bool_and bool_or bound_box box broadcast btrim \
    cardinality casefold cbrt ceil ceiling center char_length character_length chr circle \
    clock_timestamp coalesce col_description concat concat_ws convert convert_from convert_to \
    corr cos cosd cosh cot cotd count covar_pop covar_samp crc32 crc32c cume_dist \
    current_database current_schema current_schemas current_setting date_add date_bin date_part \
    date_subtract date_trunc datemultirange daterange decode degrees dense_rank diagonal \
    diameter div encode enum_first enum_last enum_range erf erfc every exp extract factorial \
    family first_value floor format format_type gamma gcd gen_random_uuid generate_series \
    generate_subscripts get_bit get_byte getdatabaseencoding greatest grouping \
    has_any_column_privilege has_column_privilege has_database_privilege \
    has_foreign_data_wrapper_privilege has_function_privilege has_language_privilege \
    has_parameter_privilege has_schema_privilege has_sequence_privilege has_server_privilege \
    has_table_privilege has_tablespace_privilege has_type_privilege hashtext hashtextextended \
    height host hostmask inet_client_addr inet_client_port inet_merge inet_same_family initcap \
    int4multirange int4range int8multirange int8range is_normalized isclosed isempty isfinite \
    ishorizontal isopen isparallel isperp isvertical json_agg json_agg_strict \
    json_array_elements json_array_elements_text json_array_length json_build_array \
    json_build_object json_each json_each_text json_extract_path json_extract_path_text \
    json_object json_object_agg json_object_agg_strict json_object_agg_unique \
    json_object_agg_unique_strict json_object_keys json_populate_record json_populate_recordset \
    json_strip_nulls json_to_record json_to_recordset json_typeof jsonb_agg jsonb_agg_strict \
    jsonb_array_elements jsonb_array_elements_text jsonb_array_length jsonb_build_array \
    jsonb_build_object jsonb_each jsonb_each_text jsonb_extract_path jsonb_extract_path_text \
    jsonb_insert jsonb_object jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique \
    jsonb_object_agg_unique_strict jsonb_object_keys jsonb_path_exists jsonb_path_exists_tz \
    jsonb_path_match jsonb_path_match_tz jsonb_path_query jsonb_path_query_array \
    jsonb_path_query_array_tz jsonb_path_query_first jsonb_path_query_first_tz \
    jsonb_path_query_tz jsonb_populate_record jsonb_populate_recordset jsonb_pretty jsonb_set \
    jsonb_set_lax jsonb_strip_nulls jsonb_to_record jsonb_to_recordset jsonb_typeof justify_days \
    justify_hours justify_interval lag last_value lcm lead least left length lgamma line ln \
    lo_close lo_creat lo_create lo_from_bytea lo_get lo_lseek lo_lseek64 lo_open lo_put lo_tell \
    lo_tell64 lo_truncate lo_truncate64 lo_unlink localtime localtimestamp log log10 loread \
    lower lower_inc lower_inf lowrite lpad lseg ltrim macaddr8_set7bit make_date make_interval \
    make_time make_timestamp make_timestamptz masklen max md5 min min_scale mod mode multirange \
    mxid_age netmask network normalize now npoints nth_value ntile nullif num_nonnulls num_nulls \
    nummultirange numnode numrange obj_description octet_length overlaps overlay parse_ident \
    path pclose percent_rank percentile_cont percentile_disc pg_advisory_unlock \
    pg_advisory_unlock_all pg_advisory_unlock_shared pg_advisory_xact_lock \
    pg_advisory_xact_lock_shared pg_backend_pid pg_blocking_pids pg_cancel_backend \
    pg_char_to_encoding pg_client_encoding pg_collation_actual_version pg_collation_for \
    pg_collation_is_visible pg_column_compression pg_column_is_updatable pg_column_size \
    pg_conversion_is_visible pg_current_snapshot pg_current_wal_flush_lsn \
    pg_current_wal_insert_lsn pg_current_wal_lsn pg_current_xact_id \
    pg_current_xact_id_if_assigned pg_database_size pg_describe_object pg_encoding_max_length \
    pg_encoding_to_char pg_export_snapshot pg_filenode_relation pg_function_is_visible \
    pg_get_constraintdef pg_get_expr pg_get_function_arg_default pg_get_function_arguments \
    pg_get_function_identity_arguments pg_get_function_result pg_get_functiondef pg_get_indexdef \
    pg_get_keywords pg_get_partition_constraintdef pg_get_partkeydef pg_get_ruledef \
    pg_get_serial_sequence pg_get_statisticsobjdef pg_get_triggerdef pg_get_userbyid \
    pg_get_viewdef pg_has_role pg_identify_object pg_indexes_size pg_is_in_recovery \
    pg_is_other_temp_schema pg_last_wal_receive_lsn pg_last_wal_replay_lsn \
    pg_last_xact_replay_timestamp pg_lsn pg_notify pg_opclass_is_visible pg_operator_is_visible \
    pg_opfamily_is_visible pg_options_to_table pg_partition_ancestors pg_partition_root \
    pg_partition_tree pg_postmaster_start_time pg_prepared_xact pg_relation_filenode \
    pg_relation_filepath pg_relation_is_publishable pg_relation_is_updatable pg_relation_size \
    pg_sequence_parameters pg_show_all_settings pg_size_bytes pg_size_pretty pg_sleep \
    pg_sleep_for pg_sleep_until pg_snapshot_xip pg_snapshot_xmax pg_snapshot_xmin \
    pg_statistics_obj_is_visible pg_table_is_visible pg_table_size pg_tablespace_databases \
    pg_tablespace_location pg_tablespace_size pg_terminate_backend pg_timezone_abbrevs \
    pg_timezone_names pg_total_relation_size pg_try_advisory_xact_lock \
    pg_try_advisory_xact_lock_shared pg_ts_config_is_visible pg_type_is_visible pg_typeof \
    pg_visible_in_snapshot pg_wal_lsn_diff pg_walfile_name pg_xact_commit_timestamp \
    pg_xact_status phraseto_tsquery pi plainto_tsquery point polygon popen position pow power \
    querytree quote_ident quote_literal quote_nullable radians radius random range_agg \
    range_intersect_agg range_merge rank regexp_count regexp_instr regexp_like regexp_match \
    regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table regexp_substr \
    regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy \
    repeat replace reverse right round row_number row_security_active row_to_json rpad rtrim \
    scale set_bit set_byte set_masklen setweight sha224 sha256 sha384 sha512 shobj_description \
    sign sin sind sinh slope split_part sqrt starts_with statement_timestamp stddev stddev_pop \
    stddev_samp string_agg string_to_array string_to_table strip strpos substr substring sum tan \
    tand tanh textcat timeofday timezone to_ascii to_bin to_char to_date to_hex to_json to_jsonb \
    to_number to_oct to_regclass to_regcollation to_regnamespace to_regoper to_regoperator \
    to_regproc to_regprocedure to_regrole to_regtype to_timestamp to_tsquery to_tsvector \
    transaction_timestamp translate treat trim trim_array trim_scale trunc ts_delete ts_filter \
    ts_headline ts_rank ts_rank_cd tsmultirange tsquery_phrase tsrange tstzmultirange tstzrange \
    tsvector_to_array txid_current txid_current_if_assigned txid_current_snapshot \
    txid_snapshot_xip txid_snapshot_xmax txid_snapshot_xmin txid_status txid_visible_in_snapshot \
    unicode_assigned unistr unnest upper upper_inc upper_inf uuid_extract_timestamp \
    uuid_extract_version uuidv4 var_pop var_samp variance version websearch_to_tsquery width \
    width_bucket xml_is_well_formed xml_is_well_formed_content xml_is_well_formed_document \
    xmlagg xmlcomment xmlexists xpath xpath_exists";

/// Expressions that look like calls and leave nothing. In the body of a function the server would
/// keep what it has computed of constants by the settings of then.
const XML: [&str; 8] = [
    "xmlattributes",
    "xmlconcat",
    "xmlelement",
    "xmlforest",
    "xmlparse",
    "xmlpi",
    "xmlroot",
    "xmlserialize",
];

/// Whether a parenthesis behind this word belongs to an expression about XML.
pub(super) fn is_xml(word: &[u8]) -> bool {
    is_in(&XML, word)
}

/// Functions that draw numbers from sequences, or tell which was drawn last.
const DRAWS: [&str; 4] = ["currval", "lastval", "nextval", "setval"];

/// The longest word of all, in bytes.
const LONGEST: usize = 34;

/// The names of the functions that leave nothing.
#[doc(hidden)]
pub fn functions() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.split(' ')
}

/// Whether a parenthesis behind this word, in any case, is a call of nothing that could leave more
/// than numbers drawn.
pub(super) fn is_known(word: &[u8]) -> bool {
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..word.len()) else {
        return false;
    };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    has(KEYWORDS, lower) || has(FUNCTIONS, lower) || is_draw(lower) || is_lock(lower)
}

/// Whether a list of words in their order, with a space between two of them, has this one. Every
/// word of a text that is passed through comes by here, so not all of them are compared.
fn has(list: &str, word: &[u8]) -> bool {
    let mut rest = list.as_bytes();
    while !rest.is_empty() {
        let middle = rest.len() / 2;
        let start = memchr::memrchr(b' ', &rest[..middle]).map_or(0, |at| at + 1);
        let end = memchr::memchr(b' ', &rest[start..]).map_or(rest.len(), |at| start + at);
        match rest[start..end].cmp(word) {
            Ordering::Equal => return true,
            Ordering::Less => rest = rest.get(end + 1..).unwrap_or_default(),
            Ordering::Greater => rest = &rest[..start.saturating_sub(1)],
        }
    }
    false
}

/// Functions that lock something for the session.
const LOCKS: [&str; 4] = [
    "pg_advisory_lock",
    "pg_advisory_lock_shared",
    "pg_try_advisory_lock",
    "pg_try_advisory_lock_shared",
];

/// Whether this is the name of a function that locks something for the session.
pub(super) fn is_lock(word: &[u8]) -> bool {
    word.len() >= 16
        && LOCKS
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// Functions that give back locks of the session.
const UNLOCKS: [&str; 3] = [
    "pg_advisory_unlock",
    "pg_advisory_unlock_all",
    "pg_advisory_unlock_shared",
];

/// Whether this is the name of a function that gives back locks of the session.
pub(super) fn is_unlock(word: &[u8]) -> bool {
    is_in(&UNLOCKS, word)
}

/// Functions and views that tell which session it is, beside all that begin with [`SIGHTS`]: what
/// describes the server process, its connection, and what it has made or holds.
const TELLING: [&str; 9] = [
    "inet_client_addr",
    "inet_client_port",
    "inet_server_addr",
    "inet_server_port",
    "pg_backend_pid",
    "pg_conf_load_time",
    "pg_lock_status",
    "pg_locks",
    "pg_my_temp_schema",
];

/// What the names of all begin with that tell of sessions, and of much else.
const SIGHTS: &str = "pg_stat_";

/// Whether this is the name of something that tells which session it is, or what is seen of it.
pub(super) fn is_sight(word: &[u8]) -> bool {
    let begins = word
        .get(..SIGHTS.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(SIGHTS.as_bytes()));
    begins
        || word.len() >= 8
            && TELLING
                .iter()
                .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// Whether this is the name of a function that draws numbers.
pub(super) fn is_draw(word: &[u8]) -> bool {
    DRAWS
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_and_no_other() {
        let calls = || functions().chain(DRAWS).chain(LOCKS);
        let all = || KEYWORDS.split(' ').chain(calls());
        assert_eq!(all().map(str::len).max(), Some(LONGEST));
        for list in [KEYWORDS, FUNCTIONS] {
            assert!(list.split(' ').is_sorted(), "{list}");
        }
        for word in all() {
            assert!(is_known(word.to_uppercase().as_bytes()), "{word}");
            for other in [format!("{word}_"), format!("_{word}"), word[1..].to_owned()] {
                let is_another = all().any(|word| word == other);
                assert_eq!(is_known(other.as_bytes()), is_another, "{other}");
            }
        }
        assert!(!is_known(b"setseed") && !is_known(b"") && !is_known(b"zzz"));
    }
}
