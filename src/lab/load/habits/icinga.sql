\set service random(1, 490)
\set now random(1600000000, 1690000000)
\set before :now - 60
\set next :now + 60
\set usec random(100000, 999999)
\set ms random(10, 99)
-- expect BEGIN
BEGIN;
-- repeat 2
\set service :service + 1
-- expect INSERT 0 1
INSERT INTO pgautoprep_bench.icinga_statehistory (check_source, current_check_attempt, endpoint_object_id, instance_id, last_hard_state, last_state, long_output, max_check_attempts, object_id, output, state, state_change, state_time, state_time_usec, state_type) VALUES ('master', '2', 11, 1, '0', '2', '', '3', :service, 'PING OK - :ms ms', '1', '1', TO_TIMESTAMP(:now) AT TIME ZONE 'UTC', ':usec', '0');
-- expect INSERT 0 1
INSERT INTO pgautoprep_bench.icinga_servicechecks (check_type, command_object_id, current_check_attempt, early_timeout, end_time, end_time_usec, endpoint_object_id, execution_time, instance_id, latency, long_output, max_check_attempts, output, perfdata, return_code, service_object_id, start_time, start_time_usec, state, state_type, timeout) VALUES ('0', 61, '1', '0', TO_TIMESTAMP(:next) AT TIME ZONE 'UTC', ':usec', 11, '0.0:ms', 1, '0.00:ms', '', '5', 'PING OK - :ms ms', 'rta=:ms.0ms;;;0', '0', :service, TO_TIMESTAMP(:now) AT TIME ZONE 'UTC', ':usec', '0', '1', '60');
-- expect UPDATE 1
UPDATE pgautoprep_bench.icinga_servicestatus SET acknowledgement_type = '0',  active_checks_enabled = '1',  check_command = 'ping',  check_source = 'master',  check_timeperiod_object_id = NULL,  check_type = '0',  current_check_attempt = '1',  current_notification_number = '0',  current_state = '1',  endpoint_object_id = 11,  event_handler_enabled = '1',  execution_time = '0.00:ms',  flap_detection_enabled = '0',  has_been_checked = '1',  instance_id = 1,  is_flapping = '0',  is_reachable = '1',  last_check = TO_TIMESTAMP(:now) AT TIME ZONE 'UTC',  last_hard_state = '0',  last_hard_state_change = TO_TIMESTAMP(:before) AT TIME ZONE 'UTC',  last_notification = NULL,  last_state_change = TO_TIMESTAMP(:now) AT TIME ZONE 'UTC',  last_time_critical = TO_TIMESTAMP(:before) AT TIME ZONE 'UTC',  last_time_ok = TO_TIMESTAMP(:before) AT TIME ZONE 'UTC',  last_time_unknown = TO_TIMESTAMP(:before) AT TIME ZONE 'UTC',  last_time_warning = TO_TIMESTAMP(:now) AT TIME ZONE 'UTC',  latency = '0.00:ms',  long_output = '',  max_check_attempts = '3',  next_check = TO_TIMESTAMP(:next) AT TIME ZONE 'UTC',  next_notification = NULL,  normal_check_interval = '0.033333',  notifications_enabled = '1',  original_attributes = 'null',  output = 'PING OK - :ms ms',  passive_checks_enabled = '1',  percent_state_change = '69.400000',  perfdata = 'rta=:ms.0ms;;;0',  problem_has_been_acknowledged = '0',  process_performance_data = '1',  retry_check_interval = '0.016667',  scheduled_downtime_depth = '0',  service_object_id = :service,  should_be_scheduled = '1',  state_type = '0',  status_update_time = TO_TIMESTAMP(:now) AT TIME ZONE 'UTC' WHERE service_object_id = :service;
-- end repeat
-- expect COMMIT
COMMIT;
