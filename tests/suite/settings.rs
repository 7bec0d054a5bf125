//! Settings: all of the server's are part of what is compared before a statement is used, and none
//! makes the proxy visible.

use crate::harness::client::Client;
use crate::harness::frames;
use crate::harness::matrix::{converts, same};
use crate::harness::server;
use pgautoprep::metrics::Counter;
use pgautoprep::oracle::{self, Hears, Rights};
use pgautoprep::sql::settings::{HARMLESS, harmless};

/// Every setting of 13 to 18, each judged: it may be compared and need not be looked at for
/// anything else, or it is harmless, or the proxy asks what it says.
///
/// A new version of the server may have one that shows the client what statements the server was
/// sent, or makes the answer to a question of ours something else. Compared it is anyhow.
const JUDGED: &str = "\
    DateStyle IntervalStyle TimeZone allow_alter_system allow_in_place_tablespaces \
    allow_system_table_mods application_name archive_cleanup_command archive_command \
    archive_library archive_mode archive_timeout array_nulls authentication_timeout autovacuum \
    autovacuum_analyze_scale_factor autovacuum_analyze_threshold autovacuum_freeze_max_age \
    autovacuum_max_workers autovacuum_multixact_freeze_max_age autovacuum_naptime \
    autovacuum_vacuum_cost_delay autovacuum_vacuum_cost_limit \
    autovacuum_vacuum_insert_scale_factor autovacuum_vacuum_insert_threshold \
    autovacuum_vacuum_max_threshold autovacuum_vacuum_scale_factor autovacuum_vacuum_threshold \
    autovacuum_work_mem autovacuum_worker_slots backend_flush_after backslash_quote \
    backtrace_functions bgwriter_delay bgwriter_flush_after bgwriter_lru_maxpages \
    bgwriter_lru_multiplier block_size bonjour bonjour_name bytea_output check_function_bodies \
    checkpoint_completion_target checkpoint_flush_after checkpoint_timeout checkpoint_warning \
    client_connection_check_interval client_encoding client_min_messages cluster_name \
    commit_delay commit_siblings commit_timestamp_buffers composite_type_mismatch \
    compute_query_id config_file \
    constraint_exclusion cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost \
    createrole_self_grant cursor_tuple_fraction data_checksums data_directory \
    data_directory_mode data_sync_retry db_user_namespace deadlock_timeout debug_assertions \
    debug_discard_caches debug_io_direct debug_logical_replication_streaming \
    debug_parallel_query debug_pretty_print debug_print_parse debug_print_plan \
    debug_print_rewritten default_statistics_target default_table_access_method \
    default_tablespace default_text_search_config default_toast_compression \
    default_transaction_deferrable default_transaction_isolation default_transaction_read_only \
    dynamic_library_path dynamic_shared_memory_type effective_cache_size \
    effective_io_concurrency enable_async_append enable_bitmapscan enable_distinct_reordering \
    enable_gathermerge enable_group_by_reordering enable_hashagg enable_hashjoin \
    enable_incremental_sort enable_indexonlyscan enable_indexscan enable_material enable_memoize \
    enable_mergejoin enable_nestloop enable_parallel_append enable_parallel_hash \
    enable_partition_pruning enable_partitionwise_aggregate enable_partitionwise_join \
    enable_presorted_aggregate enable_self_join_elimination enable_seqscan enable_sort \
    enable_tidscan escape_string_warning event_source event_triggers exit_on_error \
    extension_control_path extension_destdir external_pid_file extra_float_digits \
    file_copy_method file_extend_method force_parallel_mode from_collapse_limit fsync \
    full_page_writes geqo geqo_effort geqo_generations geqo_pool_size geqo_seed \
    geqo_selection_bias geqo_threshold gin_fuzzy_search_limit gin_pending_list_limit \
    gss_accept_delegation hash_mem_multiplier hba_file hot_standby hot_standby_feedback \
    huge_page_size huge_pages huge_pages_status icu_validation_level ident_file \
    idle_in_transaction_session_timeout idle_replication_slot_timeout idle_session_timeout \
    ignore_checksum_failure ignore_invalid_pages ignore_system_indexes in_hot_standby \
    integer_datetimes io_combine_limit io_max_combine_limit io_max_concurrency io_method \
    io_workers jit jit_above_cost jit_debugging_support jit_dump_bitcode jit_expressions \
    jit_inline_above_cost jit_optimize_above_cost jit_profiling_support jit_provider \
    jit_tuple_deforming join_collapse_limit krb_caseins_users krb_server_keyfile lc_collate \
    lc_ctype lc_messages lc_monetary lc_numeric lc_time listen_addresses lo_compat_privileges \
    local_preload_libraries lock_timeout log_autovacuum_min_duration log_checkpoints \
    log_connections log_destination log_directory log_disconnections log_duration \
    log_error_verbosity log_executor_stats log_file_mode log_filename log_hostname \
    log_line_prefix log_lock_failures log_lock_waits log_min_duration_sample \
    log_min_duration_statement log_min_error_statement log_min_messages log_parameter_max_length \
    log_parameter_max_length_on_error log_parser_stats log_planner_stats \
    log_recovery_conflict_waits log_replication_commands log_rotation_age log_rotation_size \
    log_startup_progress_interval log_statement log_statement_sample_rate log_statement_stats \
    log_temp_files log_timezone log_transaction_sample_rate log_truncate_on_rotation \
    logging_collector logical_decoding_work_mem maintenance_io_concurrency maintenance_work_mem \
    max_active_replication_origins max_connections max_files_per_process max_function_args \
    max_identifier_length max_index_keys max_locks_per_transaction \
    max_logical_replication_workers max_notify_queue_pages \
    max_parallel_apply_workers_per_subscription max_parallel_maintenance_workers \
    max_parallel_workers max_parallel_workers_per_gather max_pred_locks_per_page \
    max_pred_locks_per_relation max_pred_locks_per_transaction max_prepared_transactions \
    max_replication_slots max_slot_wal_keep_size max_stack_depth max_standby_archive_delay \
    max_standby_streaming_delay max_sync_workers_per_subscription max_wal_senders max_wal_size \
    max_worker_processes md5_password_warnings min_dynamic_shared_memory \
    min_parallel_index_scan_size min_parallel_table_scan_size min_wal_size \
    multixact_member_buffers multixact_offset_buffers notify_buffers num_os_semaphores \
    oauth_validator_libraries old_snapshot_threshold operator_precedence_warning \
    output_plugin_libraries parallel_leader_participation parallel_setup_cost \
    parallel_tuple_cost password_encryption plan_cache_mode port post_auth_delay pre_auth_delay \
    primary_conninfo primary_slot_name promote_trigger_file quote_all_identifiers \
    random_page_cost recovery_end_command recovery_init_sync_method recovery_min_apply_delay \
    recovery_prefetch recovery_target recovery_target_action recovery_target_inclusive \
    recovery_target_lsn recovery_target_name recovery_target_time recovery_target_timeline \
    recovery_target_xid recursive_worktable_factor remove_temp_files_after_crash \
    reserved_connections restart_after_crash restore_command restrict_nonsystem_relation_kind \
    row_security scram_iterations search_path segment_size send_abort_for_crash \
    send_abort_for_kill seq_page_cost serializable_buffers server_encoding server_version \
    server_version_num session_preload_libraries session_replication_role shared_buffers \
    shared_memory_size shared_memory_size_in_huge_pages shared_memory_type \
    shared_preload_libraries ssl ssl_ca_file ssl_cert_file ssl_ciphers ssl_crl_dir ssl_crl_file \
    ssl_dh_params_file ssl_ecdh_curve ssl_groups ssl_key_file ssl_library \
    ssl_max_protocol_version ssl_min_protocol_version ssl_passphrase_command \
    ssl_passphrase_command_supports_reload ssl_prefer_server_ciphers ssl_tls13_ciphers \
    standard_conforming_strings statement_timeout stats_fetch_consistency stats_temp_directory \
    subtransaction_buffers summarize_wal superuser_reserved_connections sync_replication_slots \
    synchronize_seqscans synchronized_standby_slots synchronous_commit synchronous_standby_names \
    syslog_facility syslog_ident syslog_sequence_numbers syslog_split_messages \
    tcp_keepalives_count tcp_keepalives_idle tcp_keepalives_interval tcp_user_timeout \
    temp_buffers temp_file_limit temp_tablespaces timezone_abbreviations \
    trace_connection_negotiation trace_notify trace_recovery_messages trace_sort \
    track_activities track_activity_query_size track_commit_timestamp track_cost_delay_timing \
    track_counts track_functions track_io_timing track_wal_io_timing transaction_buffers \
    transaction_deferrable transaction_isolation transaction_read_only transaction_timeout \
    transform_null_equals unix_socket_directories unix_socket_group unix_socket_permissions \
    update_process_title vacuum_buffer_usage_limit vacuum_cleanup_index_scale_factor \
    vacuum_cost_delay vacuum_cost_limit vacuum_cost_page_dirty vacuum_cost_page_hit \
    vacuum_cost_page_miss vacuum_defer_cleanup_age vacuum_failsafe_age vacuum_freeze_min_age \
    vacuum_freeze_table_age vacuum_max_eager_freeze_failure_rate vacuum_multixact_failsafe_age \
    vacuum_multixact_freeze_min_age vacuum_multixact_freeze_table_age vacuum_truncate \
    wal_block_size wal_buffers wal_compression wal_consistency_checking wal_decode_buffer_size \
    wal_init_zero wal_keep_size wal_level wal_log_hints wal_receiver_create_temp_slot \
    wal_receiver_status_interval wal_receiver_timeout wal_recycle wal_retrieve_retry_interval \
    wal_segment_size wal_sender_timeout wal_skip_threshold wal_summary_keep_time wal_sync_method \
    wal_writer_delay wal_writer_flush_after work_mem xmlbinary xmloption zero_damaged_pages";

/// Settings that SET does not change outside a transaction, or that may have one value only.
const FIXED: [&str; 6] = [
    "debug_discard_caches",
    "default_table_access_method",
    "lc_messages",
    "transaction_deferrable",
    "transaction_isolation",
    "transaction_read_only",
];

/// The columns of all rows of an answer.
fn columns(client: &mut Client, sql: &str) -> Vec<String> {
    let answer = client.query(sql);
    assert!(!frames::tags(&answer).contains('E'), "{sql}: {answer:?}");
    let rows = answer.iter().filter(|frame| frame.tag == b'D');
    let columns = rows.flat_map(frames::Frame::columns);
    columns.map(Option::unwrap_or_default).collect()
}

/// The text that contexts are compared by.
fn context(client: &mut Client) -> String {
    let [whole, short] = [Rights::Asked, Rights::Known].map(|rights| {
        let hears = Hears {
            but: "",
            asks_for_left: rights == Rights::Asked,
            may_lock: rights == Rights::Asked,
        };
        let question = oracle::context_query(false, false, Some(hears), rights);
        let answer = columns(client, &question);
        oracle::digest(&answer).unwrap()
    });
    // If anything may be temporary, the short question has no answer.
    if !short[4].is_empty() {
        assert_eq!(short[6], whole[6]);
        assert!(whole[4].ends_with(&format!(" {}", short[4])), "{short:?}");
    }
    whole[6].clone()
}

/// The major version of the server.
fn major(client: &mut Client) -> u16 {
    let number = client.value("SHOW server_version_num");
    u16::try_from(number.parse::<u32>().unwrap() / 10_000).unwrap()
}

#[test]
fn every_setting_is_shown_and_somebody_has_judged_it() {
    let mut client = Client::login(&server::address(), &server::database(""));
    let shown = columns(&mut client, "SHOW ALL");
    let shown: Vec<&str> = shown.iter().step_by(3).map(String::as_str).collect();
    let judged: Vec<&str> = JUDGED.split(' ').collect();
    for name in columns(&mut client, "SELECT name FROM pg_settings") {
        assert!(shown.contains(&&*name), "SHOW ALL hides {name}");
        assert!(
            name.contains('.') || judged.contains(&&*name),
            "nobody has judged {name}: does it tell the client of what is not the client's?"
        );
    }
}

#[test]
fn a_role_without_rights_is_shown_all_that_a_session_changes() {
    let address = server::address();
    let database = server::database("CREATE ROLE plain_settings LOGIN");
    let [all, plain] = ["postgres", "plain_settings"].map(|user| {
        let parameters = [("user", user), ("database", &database)];
        let mut client = Client::login_with(&address, &parameters);
        // Those are looked at once, at login; or name files.
        columns(
            &mut client,
            "SELECT name FROM pg_settings WHERE context IN ('user', 'superuser') \
             AND name NOT IN ('dynamic_library_path', 'session_preload_libraries', \
             'extension_control_path', 'extension_destdir', 'output_plugin_libraries')",
        )
    });
    assert_eq!(all, plain);
}

#[test]
fn the_short_question_has_an_answer_unless_something_may_be_temporary() {
    let role_of = |change: &str| {
        let mut client = Client::login(&server::address(), &server::database(""));
        client.query(change);
        let question = oracle::context_query(false, false, None, Rights::Known);
        let answer = columns(&mut client, &question);
        oracle::digest(&answer).unwrap().swap_remove(4)
    };
    // It says who it is, in hexadecimal.
    assert_eq!(role_of("SELECT 1"), "706f737467726573");
    for change in ["SET search_path = a, PG_TEMP", "CREATE TEMP TABLE t ()"] {
        assert_eq!(role_of(change), "", "{change}");
    }
}

#[test]
fn what_is_harmless_is_a_setting() {
    let mut client = Client::login(&server::address(), &server::database(""));
    let major = major(&mut client);
    let names = columns(&mut client, "SELECT name FROM pg_settings");
    for (name, since) in HARMLESS.iter().flat_map(|group| group.names) {
        let known = names.iter().any(|known| known == name);
        assert_eq!(known, major >= *since, "{name} on {major}");
    }
}

/// Sets it to something else than it is, one way or the other.
fn change(client: &mut Client, [name, kind, old, least, most, words]: &[String; 6]) -> bool {
    const STRINGS: [&str; 15] = [
        "C",
        "POSIX",
        "LATIN1",
        "Asia/Tokyo",
        "simple",
        "view",
        "set",
        "hash",
        "Australia",
        "pg_default",
        "ISO, DMY",
        "other, public",
        "x",
        "0",
        "Default",
    ];
    let candidates: Vec<String> = match &**kind {
        "bool" => vec![if old == "on" { "off" } else { "on" }.to_owned()],
        "enum" => words.split(',').map(str::to_owned).collect(),
        "string" => STRINGS.map(str::to_owned).into(),
        _ => vec![most.clone(), least.clone(), "100".to_owned()],
    };
    let show = format!("SHOW \"{name}\"");
    let before = client.value(&show);
    candidates.iter().any(|value| {
        let answer = client.query(&format!("SET \"{name}\" = '{value}'"));
        !frames::tags(&answer).contains('E') && client.value(&show) != before
    })
}

#[test]
fn every_setting_a_session_can_change_changes_the_context() {
    let mut client = Client::login(&server::address(), &server::database(""));
    let settings = columns(
        &mut client,
        "SELECT name, vartype, setting, min_val, max_val, array_to_string(enumvals, ',') \
         FROM pg_settings WHERE context IN ('user', 'superuser')",
    );
    let before = context(&mut client);
    let mut changed = 0;
    for setting in settings.as_chunks::<6>().0 {
        let name = &setting[0];
        let one_value = setting[1] == "enum" && !setting[5].contains(',');
        if FIXED.contains(&&**name) || one_value {
            continue;
        }
        assert!(change(&mut client, setting), "{name} cannot be changed");
        let after = context(&mut client);
        let harmless = harmless().any(|known| known == name);
        assert_eq!(before == after, harmless, "{name}: {after:?}");
        client.run(&format!("RESET \"{name}\""));
        assert_eq!(before, context(&mut client), "{name}");
        changed += 1;
    }
    assert!(changed > 130, "{changed}");
}

#[test]
fn so_does_who_the_session_is_and_what_it_sees() {
    let mut client = Client::login(&server::address(), &server::database(""));
    let mut seen = vec![context(&mut client)];
    for sql in [
        "CREATE TEMP TABLE t ()",
        "CREATE SCHEMA postgres",
        "SET ROLE pg_monitor",
        "SET ROLE none; SET SESSION AUTHORIZATION pg_monitor",
        "SET SESSION AUTHORIZATION postgres; SET ROLE postgres",
    ] {
        client.run(sql);
        let now = context(&mut client);
        assert!(!seen.contains(&now), "{sql}");
        seen.push(now);
    }
}

#[test]
fn a_context_is_read_in_every_encoding() {
    let mut client = Client::login(&server::address(), &server::database(""));
    client.run("CREATE ROLE \"rôle\" SUPERUSER");
    client.run("SET client_encoding = LATIN1");
    let before = context(&mut client);
    client.run("SET client_encoding = UTF8");
    client.run("SET ROLE \"rôle\"");
    client.run("SET client_encoding = LATIN1");
    assert_ne!(before, context(&mut client));
    client.run("RESET ROLE");
    client.run("SET client_encoding = UTF8");
    client.run("DROP ROLE \"rôle\"");
}

#[test]
fn what_the_log_is_sent_does_not_tell_of_us() {
    let setup = "CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 99) i";
    converts(setup, |client, round| {
        for level in ["notice", "log", "debug1", "debug2", "debug5", "error"] {
            client.query(&format!("SET client_min_messages = {level}"));
            // Not its own statement, which debug5 shows with figures of its own.
            client.query("SET log_statement = 'none'");
            if !level.starts_with("debug") {
                client.query("SET log_statement = 'all'");
            }
            let answer = client.query(&format!("SELECT id FROM t WHERE id = {round}"));
            let notices = answer.iter().filter(|frame| frame.tag == b'N');
            let messages = notices.filter_map(|notice| notice.field(b'M'));
            let ours = messages.filter(|message| message.contains("pgautoprep"));
            assert_eq!(ours.count(), 0, "{level}");
            client.query("SET client_min_messages = notice");
            client.query(&format!("SELECT id FROM t WHERE id = {round}"));
        }
    });
}

#[test]
fn an_error_that_ends_the_session_is_the_clients_own() {
    let setup = "CREATE TABLE t AS SELECT i AS id FROM generate_series(1, 99) i";
    same(setup, |client, round| {
        client.query(&format!("SELECT id FROM t WHERE id = {round}"));
        client.query("SET exit_on_error = on");
        client.query(&format!("SELECT id FROM t WHERE id = {round}"));
        // Of our text the server would complain, not of this.
        client.query(&format!("SELECT id + {round} FROM t GROUP BY id + {round}"));
        client.query("RESET exit_on_error");
    });
}

#[test]
fn settings_of_every_kind_are_honoured() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, k int); INSERT INTO t SELECT i, i % 7 \
        FROM generate_series(1, 99) i; CREATE VIEW v AS SELECT * FROM t \
        WHERE k < 5; ANALYZE t";
    let summary = converts(setup, |client, round| {
        let reads = [
            format!(
                "SELECT id, timestamptz '2020-01-01 10:00 EST' AS at FROM t WHERE id = {}",
                1 + round
            ),
            format!("SELECT id FROM v WHERE k <> {round}"),
            format!("SELECT id FROM t WHERE id < {round} ORDER BY id"),
        ];
        for setting in [
            "timezone_abbreviations = 'Australia'",
            "restrict_nonsystem_relation_kind = 'view'",
            "cpu_index_tuple_cost = 100",
        ] {
            client.query(&format!("SET {setting}"));
            for read in reads.iter().chain(&reads) {
                client.query(read);
            }
            let name = setting.split(' ').next().unwrap_or_default();
            client.query(&format!("RESET {name}"));
            reads.iter().for_each(|read| drop(client.query(read)));
        }
    });
    assert!(summary.count(Counter::Converted) > 300, "{summary}");
}

/// Who asks for the search path has the server make a temporary schema if that stands first in it.
#[test]
fn asking_for_the_search_path_makes_no_temporary_schema() {
    let setup = "CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (5, 'five'); \
        CREATE SCHEMA other; CREATE TABLE other.t (id int, v int); INSERT INTO other.t VALUES (5)";
    converts(setup, |client, round| {
        let paths = [
            "pg_temp, public",
            "\"PG_TEMP\", pg_temp, other",
            "'pg_temp', other, public",
            "public, pg_temp",
        ];
        client.query(&format!("SET search_path = {}", paths[round / 3 % 4]));
        client.query(&format!("SELECT v FROM t WHERE id = {}", round % 6));
        client.query("SELECT pg_my_temp_schema() <> 0");
        if round % 11 == 9 {
            client.query("CREATE TABLE pg_temp.t (id text, v text)");
        }
    });
}
