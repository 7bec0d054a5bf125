//! The functions of `pg_catalog` that other processes may run by their label, and what is known of
//! them beside it.
//!
//! That a function is labelled as safe for parallel workers says that it depends on the database
//! and on the state that a worker is given (`InitializeParallelDSM` in `parallel.c`), and that is
//! more than two sessions have in common without further proof. The lists were made from the
//! catalogs of 13 to 18: every function labelled so that is not immutable stands in one of them, or
//! is not known. Those of text search may be immutable.

use crate::reason::Stay;

/// Functions that do something, or wait.
const EFFECTS: &str = "\
    pg_cancel_backend pg_create_restore_point pg_log_backend_memory_contexts \
    pg_log_standby_snapshot pg_promote pg_reload_conf pg_rotate_logfile pg_rotate_logfile_old \
    pg_sleep pg_sleep_for pg_sleep_until pg_stat_reset pg_stat_reset_backend_stats \
    pg_stat_reset_replication_slot pg_stat_reset_shared pg_stat_reset_single_function_counters \
    pg_stat_reset_single_table_counters pg_stat_reset_slru pg_stat_reset_subscription_stats \
    pg_switch_wal pg_terminate_backend pg_wal_replay_pause pg_wal_replay_resume";

/// Functions that show locks or files of the server process that runs them.
const PROCESS: &str = "\
    pg_lock_status pg_ls_tmpdir";

/// Functions that show addresses and that 13 takes for safe.
const ADDRESS: &str = "\
    inet_server_addr inet_server_port";

/// Functions and ways of sampling that draw random values, and one whose values ascend within one
/// session only.
const RANDOM: &str = "\
    array_sample array_shuffle bernoulli gen_random_uuid system uuidv4 uuidv7";

/// Functions that read settings, or what follows from them.
const SETTINGS: &str = "\
    current_setting pg_client_encoding pg_jit_available pg_settings_get_flags \
    pg_show_all_file_settings pg_show_all_settings pg_timezone_abbrevs \
    pg_timezone_abbrevs_abbrevs pg_timezone_abbrevs_zone pg_timezone_names";

/// Functions whose value depends on the role that asks, in one of their forms.
const ROLE: &str = "\
    current_user getpgusername has_any_column_privilege has_column_privilege \
    has_database_privilege has_foreign_data_wrapper_privilege has_function_privilege \
    has_language_privilege has_largeobject_privilege has_parameter_privilege \
    has_schema_privilege has_sequence_privilege has_server_privilege has_table_privilege \
    has_tablespace_privilege has_type_privilege pg_has_role row_security_active session_user \
    system_user";

/// Functions that look names up, or show them as the search path lets them be written.
const NAMES: &str = "\
    format_type oidvectortypes pg_collation_for pg_collation_is_visible pg_conversion_is_visible \
    pg_describe_object pg_function_is_visible pg_get_constraintdef pg_get_expr \
    pg_get_function_arg_default pg_get_function_arguments pg_get_function_identity_arguments \
    pg_get_function_result pg_get_function_sqlbody pg_get_functiondef pg_get_indexdef \
    pg_get_object_address pg_get_partition_constraintdef pg_get_partkeydef pg_get_ruledef \
    pg_get_serial_sequence pg_get_statisticsobjdef pg_get_statisticsobjdef_columns \
    pg_get_statisticsobjdef_expressions pg_get_triggerdef pg_identify_object \
    pg_identify_object_as_address pg_input_error_info pg_input_is_valid pg_is_other_temp_schema \
    pg_opclass_is_visible pg_operator_is_visible pg_opfamily_is_visible pg_relation_filenode \
    pg_relation_filepath pg_statistics_obj_is_visible pg_table_is_visible \
    pg_ts_config_is_visible pg_ts_dict_is_visible pg_ts_parser_is_visible \
    pg_ts_template_is_visible pg_type_is_visible pg_typeof regclass regclassin regclassout \
    regcollationin regcollationout regconfigin regconfigout regdictionaryin regdictionaryout \
    regnamespacein regnamespaceout regoperatorin regoperatorout regoperin regoperout \
    regprocedurein regprocedureout regprocin regprocout regrolein regroleout regtypein \
    regtypeout to_regclass to_regcollation to_regnamespace to_regoper to_regoperator to_regproc \
    to_regprocedure to_regrole to_regtype to_regtypemod";

/// Functions about the server, its disks and its other processes.
const SERVER: &str = "\
    current_database getdatabaseencoding mxid_age pg_available_extension_versions \
    pg_available_extensions pg_available_wal_summaries pg_backup_start_time pg_blocking_pids \
    pg_collation_actual_version pg_control_checkpoint pg_control_init pg_control_recovery \
    pg_control_system pg_current_logfile pg_current_snapshot pg_current_wal_flush_lsn \
    pg_current_wal_insert_lsn pg_current_wal_lsn pg_database_collation_actual_version \
    pg_database_size pg_extension_update_paths pg_get_keywords pg_get_multixact_members \
    pg_get_replication_slots pg_get_shmem_allocations pg_get_shmem_allocations_numa \
    pg_get_wait_events pg_get_wal_replay_pause_state pg_get_wal_resource_managers \
    pg_get_wal_summarizer_state pg_hba_file_rules pg_ident_file_mappings pg_indexes_size \
    pg_is_in_backup pg_is_in_recovery pg_is_wal_replay_paused \
    pg_isolation_test_session_is_blocked pg_last_committed_xact pg_last_wal_receive_lsn \
    pg_last_wal_replay_lsn pg_last_xact_replay_timestamp pg_ls_archive_statusdir pg_ls_dir \
    pg_ls_logdir pg_ls_logicalmapdir pg_ls_logicalsnapdir pg_ls_replslotdir pg_ls_summariesdir \
    pg_ls_waldir pg_numa_available pg_postmaster_start_time pg_prepared_xact pg_read_binary_file \
    pg_read_file pg_read_file_old pg_relation_size pg_replication_origin_oid \
    pg_safe_snapshot_blocking_pids pg_split_walfile_name pg_stat_file \
    pg_stat_get_recovery_prefetch pg_table_size pg_tablespace_databases pg_tablespace_location \
    pg_tablespace_size pg_total_relation_size pg_wal_summary_contents pg_xact_commit_timestamp \
    pg_xact_commit_timestamp_origin pg_xact_status txid_current_snapshot txid_status version";

/// Functions that use dictionaries and configurations of text search.
const TEXT_SEARCH: &str = "\
    get_current_ts_config json_to_tsvector jsonb_to_tsvector phraseto_tsquery plainto_tsquery \
    to_tsquery to_tsvector ts_debug ts_headline ts_lexize ts_match_tq ts_match_tt ts_parse \
    ts_rewrite ts_stat ts_token_type websearch_to_tsquery";

/// Every list of what may not run elsewhere, and why.
const DENIED: [(Stay, &str); 9] = [
    (Stay::Effect, EFFECTS),
    (Stay::Process, PROCESS),
    (Stay::Address, ADDRESS),
    (Stay::Random, RANDOM),
    (Stay::Settings, SETTINGS),
    (Stay::Role, ROLE),
    (Stay::Names, NAMES),
    (Stay::Server, SERVER),
    (Stay::TextSearch, TEXT_SEARCH),
];

/// Functions that are not immutable and that give the same answer in every session of the database
/// with equal settings. Time is the same wherever a statement has a transaction of its own.
const KNOWN: &str = "\
    aclexplode aclitemin aclitemout age anyarray_out anycompatiblearray_out \
    anycompatiblemultirange_in anycompatiblemultirange_out anycompatiblerange_in \
    anycompatiblerange_out anyenum_out anymultirange_in anymultirange_out anyrange_in \
    anyrange_out anytextcat array_in array_out array_to_json array_to_string cash_in cash_out \
    clock_timestamp col_description concat concat_ws convert convert_from convert_to date \
    date_add date_cmp_timestamptz date_eq_timestamptz date_ge_timestamptz date_gt_timestamptz \
    date_in date_le_timestamptz date_lt_timestamptz date_ne_timestamptz date_out date_part \
    date_subtract date_trunc enum_first enum_in enum_last enum_out enum_range extract format \
    generate_series in_range interval_in interval_out interval_pl_timestamptz json_agg \
    json_agg_strict json_agg_strict_transfn json_agg_transfn json_build_array json_build_object \
    json_object_agg json_object_agg_strict json_object_agg_strict_transfn \
    json_object_agg_transfn json_object_agg_unique json_object_agg_unique_strict \
    json_object_agg_unique_strict_transfn json_object_agg_unique_transfn json_populate_record \
    json_populate_recordset json_to_record json_to_recordset jsonb_agg jsonb_agg_finalfn \
    jsonb_agg_strict jsonb_agg_strict_transfn jsonb_agg_transfn jsonb_build_array \
    jsonb_build_object jsonb_object_agg_finalfn jsonb_object_agg_strict_transfn \
    jsonb_object_agg_transfn jsonb_object_agg_unique_strict_transfn \
    jsonb_object_agg_unique_transfn jsonb_path_exists_tz jsonb_path_match_tz \
    jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_path_query_tz \
    jsonb_populate_record jsonb_populate_record_valid jsonb_populate_recordset jsonb_to_record \
    jsonb_to_recordset length make_timestamptz money multirange_in multirange_out now numeric \
    obj_description overlaps pg_char_to_encoding pg_encoding_to_char pg_get_userbyid \
    quote_literal quote_nullable range_in range_out record_in record_out row_to_json \
    shobj_description textanycat time time_in timeofday timestamp timestamp_cmp_timestamptz \
    timestamp_eq_timestamptz timestamp_ge_timestamptz timestamp_gt_timestamptz timestamp_in \
    timestamp_le_timestamptz timestamp_lt_timestamptz timestamp_ne_timestamptz timestamp_out \
    timestamptz timestamptz_cmp_date timestamptz_cmp_timestamp timestamptz_eq_date \
    timestamptz_eq_timestamp timestamptz_ge_date timestamptz_ge_timestamp timestamptz_gt_date \
    timestamptz_gt_timestamp timestamptz_in timestamptz_le_date timestamptz_le_timestamp \
    timestamptz_lt_date timestamptz_lt_timestamp timestamptz_mi_interval timestamptz_ne_date \
    timestamptz_ne_timestamp timestamptz_out timestamptz_pl_interval timetz timetz_in timezone \
    to_char to_date to_json to_jsonb to_number to_timestamp transaction_timestamp xml xml_in \
    xml_is_well_formed";

/// Why a function of this name may not run elsewhere, as far as it is known.
#[must_use]
pub fn denial(name: &str) -> Option<Stay> {
    let found = DENIED.iter().find(|(_, list)| has(list, name));
    found.map(|(stay, _)| *stay)
}

/// Whether a function of this name that is not immutable is known to give the same answer
/// everywhere.
#[must_use]
pub fn is_known(name: &str) -> bool {
    has(KNOWN, name)
}

fn has(list: &str, name: &str) -> bool {
    list.split(' ').any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_sorted_and_have_nothing_in_common() {
        let lists = DENIED.iter().map(|(_, list)| *list).chain([KNOWN]);
        let mut all = Vec::new();
        for list in lists {
            assert!(list.split(' ').is_sorted(), "{list}");
            all.extend(list.split(' '));
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn names_are_found_as_a_whole() {
        assert_eq!(denial("pg_sleep"), Some(Stay::Effect));
        assert_eq!(denial("uuidv7"), Some(Stay::Random));
        assert_eq!(denial("pg_lock_status"), Some(Stay::Process));
        assert_eq!(denial("sleep"), None);
        assert!(is_known("now") && !is_known("no") && !is_known("pg_sleep"));
    }
}
