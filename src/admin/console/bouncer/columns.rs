//! The columns of the tables that `PgBouncer` has.

use crate::admin::console::value::{TableColumn, int4, int8, numeric, text};

pub(super) const STATS: &[TableColumn] = &[
    text("database"),
    numeric("total_server_assignment_count"),
    numeric("total_xact_count"),
    numeric("total_query_count"),
    numeric("total_received"),
    numeric("total_sent"),
    numeric("total_xact_time"),
    numeric("total_query_time"),
    numeric("total_wait_time"),
    numeric("total_client_parse_count"),
    numeric("total_server_parse_count"),
    numeric("total_bind_count"),
    numeric("total_client_login_count"),
    numeric("avg_server_assignment_count"),
    numeric("avg_xact_count"),
    numeric("avg_query_count"),
    numeric("avg_recv"),
    numeric("avg_sent"),
    numeric("avg_xact_time"),
    numeric("avg_query_time"),
    numeric("avg_wait_time"),
    numeric("avg_client_parse_count"),
    numeric("avg_server_parse_count"),
    numeric("avg_bind_count"),
    numeric("avg_client_login_count"),
    numeric("total_converted_count"),
    numeric("avg_converted_count"),
];

pub(super) const STATS_TOTALS: &[TableColumn] = &[
    text("database"),
    numeric("server_assignment_count"),
    numeric("xact_count"),
    numeric("query_count"),
    numeric("bytes_received"),
    numeric("bytes_sent"),
    numeric("xact_time"),
    numeric("query_time"),
    numeric("wait_time"),
    numeric("client_parse_count"),
    numeric("server_parse_count"),
    numeric("bind_count"),
    numeric("client_login_count"),
    numeric("converted_count"),
];

pub(super) const STATS_AVERAGES: &[TableColumn] = &[
    text("database"),
    numeric("server_assignment_count"),
    numeric("xact_count"),
    numeric("query_count"),
    numeric("bytes_received"),
    numeric("bytes_sent"),
    numeric("xact_time"),
    numeric("query_time"),
    numeric("wait_time"),
    numeric("client_parse_count"),
    numeric("server_parse_count"),
    numeric("bind_count"),
    numeric("client_login_count"),
    numeric("converted_count"),
];

pub(super) const POOLS: &[TableColumn] = &[
    text("database"),
    text("user"),
    int4("cl_active"),
    int4("cl_waiting"),
    int4("cl_active_cancel_req"),
    int4("cl_waiting_cancel_req"),
    int4("sv_active"),
    int4("sv_active_cancel"),
    int4("sv_being_canceled"),
    int4("sv_idle"),
    int4("sv_used"),
    int4("sv_tested"),
    int4("sv_login"),
    int4("maxwait"),
    int4("maxwait_us"),
    text("pool_mode"),
    text("load_balance_hosts"),
];

/// How many columns are `PgBouncer`'s of those of clients and servers.
const SHARED: usize = 21;

pub(super) const CLIENTS: &[TableColumn] = &{
    let mut all = [int8("queries"); SHARED + 5];
    let mut at = 0;
    while at < SHARED {
        all[at] = SOCKET[at];
        at += 1;
    }
    all[SHARED + 1] = int8("converted");
    all[SHARED + 2] = int8("received");
    all[SHARED + 3] = int8("sent");
    all[SHARED + 4] = text("waits_for");
    all
};

pub(super) const SERVERS: &[TableColumn] = &{
    let mut all = [int8("statement_bytes"); SHARED + 1];
    let mut at = 0;
    while at < SHARED {
        all[at] = SOCKET[at];
        at += 1;
    }
    all
};

const SOCKET: [TableColumn; SHARED] = [
    text("type"),
    text("user"),
    text("database"),
    text("replication"),
    text("state"),
    text("addr"),
    int4("port"),
    text("local_addr"),
    int4("local_port"),
    text("connect_time"),
    text("request_time"),
    int4("wait"),
    int4("wait_us"),
    int4("close_needed"),
    text("ptr"),
    text("link"),
    int4("remote_pid"),
    text("tls"),
    text("application_name"),
    int4("prepared_statements"),
    int4("id"),
];

pub(super) const SOCKETS: &[TableColumn] = &{
    let mut all = [int4("recv_pos"); SHARED + 7];
    let mut at = 0;
    while at < SHARED {
        all[at] = SOCKET[at];
        at += 1;
    }
    all[SHARED + 1] = int4("pkt_pos");
    all[SHARED + 2] = int4("pkt_remain");
    all[SHARED + 3] = int4("send_pos");
    all[SHARED + 4] = int4("send_remain");
    all[SHARED + 5] = int4("pkt_avail");
    all[SHARED + 6] = int4("send_avail");
    all
};

pub(super) const DATABASES: &[TableColumn] = &[
    text("name"),
    text("host"),
    int4("port"),
    text("database"),
    text("force_user"),
    int4("pool_size"),
    int4("min_pool_size"),
    int4("reserve_pool_size"),
    int4("server_lifetime"),
    text("pool_mode"),
    text("load_balance_hosts"),
    int4("max_connections"),
    int4("current_connections"),
    int4("max_client_connections"),
    int4("current_client_connections"),
    int4("paused"),
    int4("disabled"),
];

pub(super) const USERS: &[TableColumn] = &[
    text("name"),
    text("pool_size"),
    text("reserve_pool_size"),
    text("pool_mode"),
    int4("max_user_connections"),
    int4("current_connections"),
    int4("max_user_client_connections"),
    int4("current_client_connections"),
];

pub(super) const CONFIG: &[TableColumn] = &[
    text("key"),
    text("value"),
    text("default"),
    text("changeable"),
];

pub(super) const MEM: &[TableColumn] = &[
    text("name"),
    int4("size"),
    int4("used"),
    int4("free"),
    int8("memtotal"),
];

pub(super) const FDS: &[TableColumn] = &[
    int4("fd"),
    text("task"),
    text("user"),
    text("database"),
    text("addr"),
    int4("port"),
    int8("cancel"),
    int4("link"),
    text("client_encoding"),
    text("std_strings"),
    text("datestyle"),
    text("timezone"),
    text("password"),
    text("scram_client_key"),
    text("scram_server_key"),
];

pub(super) const DNS_HOSTS: &[TableColumn] = &[text("hostname"), int8("ttl"), text("addrs")];

pub(super) const DNS_ZONES: &[TableColumn] = &[text("zonename"), int8("serial"), int4("count")];

pub(super) const PEERS: &[TableColumn] = &[
    int4("peer_id"),
    text("host"),
    int4("port"),
    int4("pool_size"),
];

pub(super) const PEER_POOLS: &[TableColumn] = &[
    int4("peer_id"),
    int4("cl_active_cancel_req"),
    int4("cl_waiting_cancel_req"),
    int4("sv_active_cancel"),
    int4("sv_login"),
];
