CREATE TABLE auth_user (id serial PRIMARY KEY, username varchar(150) UNIQUE NOT NULL,
  email varchar(254) NOT NULL, is_active boolean NOT NULL DEFAULT true, last_login timestamptz);
CREATE TABLE django_session (session_key varchar(40) PRIMARY KEY, session_data text NOT NULL,
  expire_date timestamptz NOT NULL);
CREATE TABLE blog_post (id bigserial PRIMARY KEY, author_id int NOT NULL REFERENCES auth_user,
  title varchar(200) NOT NULL, body text NOT NULL DEFAULT '', views int NOT NULL DEFAULT 0)
  WITH (fillfactor = 80);
CREATE INDEX ON blog_post (author_id);
CREATE TABLE blog_comment (id bigserial PRIMARY KEY,
  post_id bigint NOT NULL REFERENCES blog_post ON DELETE CASCADE, user_id int REFERENCES auth_user,
  body text NOT NULL, approved boolean NOT NULL DEFAULT false);
CREATE INDEX ON blog_comment (post_id);
CREATE TABLE stock (sku varchar(40) PRIMARY KEY, quantity int NOT NULL) WITH (fillfactor = 80);
CREATE TABLE audit (id serial PRIMARY KEY, what text);
CREATE TABLE page (page_id serial PRIMARY KEY, page_namespace smallint NOT NULL,
  page_title text NOT NULL, page_latest int NOT NULL DEFAULT 0, page_len int NOT NULL DEFAULT 0,
  page_touched timestamptz, UNIQUE (page_namespace, page_title)) WITH (fillfactor = 80);
CREATE TABLE items (itemid bigint PRIMARY KEY, hostid bigint NOT NULL,
  name varchar(255) NOT NULL DEFAULT '', status integer NOT NULL DEFAULT 0);
CREATE INDEX ON items (hostid);
CREATE TABLE history_uint (itemid bigint NOT NULL, clock integer NOT NULL DEFAULT 0,
  value numeric(20) NOT NULL DEFAULT 0, ns integer NOT NULL DEFAULT 0);
CREATE INDEX ON history_uint (itemid, clock);
CREATE TABLE icinga_servicestatus (servicestatus_id bigserial PRIMARY KEY, instance_id bigint
  DEFAULT 0, service_object_id bigint DEFAULT 0, status_update_time timestamp, output text DEFAULT
  '', long_output text DEFAULT '', perfdata text DEFAULT '', check_source varchar(255) DEFAULT '',
  current_state integer DEFAULT 0, has_been_checked integer DEFAULT 0, should_be_scheduled integer
  DEFAULT 0, current_check_attempt integer DEFAULT 0, max_check_attempts integer DEFAULT 0,
  last_check timestamp, next_check timestamp, check_type integer DEFAULT 0, last_state_change
  timestamp, last_hard_state_change timestamp, last_hard_state integer DEFAULT 0, last_time_ok
  timestamp, last_time_warning timestamp, last_time_unknown timestamp, last_time_critical
  timestamp, state_type integer DEFAULT 0, last_notification timestamp, next_notification
  timestamp, no_more_notifications integer DEFAULT 0, notifications_enabled integer DEFAULT 0,
  problem_has_been_acknowledged integer DEFAULT 0, acknowledgement_type integer DEFAULT 0,
  current_notification_number integer DEFAULT 0, passive_checks_enabled integer DEFAULT 0,
  active_checks_enabled integer DEFAULT 0, event_handler_enabled integer DEFAULT 0,
  flap_detection_enabled integer DEFAULT 0, is_flapping integer DEFAULT 0, percent_state_change
  double precision DEFAULT 0, latency double precision DEFAULT 0, execution_time double precision
  DEFAULT 0, scheduled_downtime_depth integer DEFAULT 0, failure_prediction_enabled integer
  DEFAULT 0, process_performance_data integer DEFAULT 0, obsess_over_service integer DEFAULT 0,
  modified_service_attributes integer DEFAULT 0, original_attributes text, event_handler text
  DEFAULT '', check_command text DEFAULT '', normal_check_interval double precision DEFAULT 0,
  retry_check_interval double precision DEFAULT 0, check_timeperiod_object_id bigint DEFAULT 0,
  is_reachable integer DEFAULT 0, endpoint_object_id bigint);
CREATE INDEX ON icinga_servicestatus (service_object_id);
CREATE TABLE icinga_statehistory (statehistory_id bigserial PRIMARY KEY, instance_id bigint
  DEFAULT 0, state_time timestamp, state_time_usec integer DEFAULT 0, object_id bigint DEFAULT 0,
  state_change integer DEFAULT 0, state integer DEFAULT 0, state_type integer DEFAULT 0,
  current_check_attempt integer DEFAULT 0, max_check_attempts integer DEFAULT 0, last_state
  integer DEFAULT -1, last_hard_state integer DEFAULT -1, output text DEFAULT '', long_output text
  DEFAULT '', check_source varchar(255) DEFAULT '', endpoint_object_id bigint);
CREATE TABLE icinga_servicechecks (servicecheck_id bigserial PRIMARY KEY, instance_id bigint
  DEFAULT 0, service_object_id bigint DEFAULT 0, check_type integer DEFAULT 0,
  current_check_attempt integer DEFAULT 0, max_check_attempts integer DEFAULT 0, state integer
  DEFAULT 0, state_type integer DEFAULT 0, start_time timestamp, start_time_usec integer DEFAULT
  0, end_time timestamp, end_time_usec integer DEFAULT 0, timeout integer DEFAULT 0, early_timeout
  integer DEFAULT 0, execution_time double precision DEFAULT 0, latency double precision DEFAULT
  0, return_code integer DEFAULT 0, output text DEFAULT '', long_output text DEFAULT '', perfdata
  text DEFAULT '', command_object_id bigint DEFAULT 0, endpoint_object_id bigint DEFAULT 0);
CREATE TABLE tenant_note (id serial PRIMARY KEY, tenant text NOT NULL, note text NOT NULL);
CREATE VIEW my_note AS
  SELECT id, note FROM tenant_note WHERE tenant = current_setting('app.tenant', true);
INSERT INTO auth_user (username, email)
  SELECT 'user' || g, 'user' || g || '@example.com' FROM generate_series(1, 2000) g;
INSERT INTO django_session
  SELECT lpad(g::text, 32, '0'), repeat('d', 50), '2034-05-15 00:00:00+00'
  FROM generate_series(1000, 2999) g;
INSERT INTO blog_post (author_id, title)
  SELECT 1 + g % 2000, 'Post ' || g FROM generate_series(1, 10000) g;
INSERT INTO blog_comment (post_id, user_id, body)
  SELECT 1 + g % 5000, 1 + g % 2000, 'c' || g FROM generate_series(1, 10000) g;
INSERT INTO stock SELECT 'SKU' || g, 1000000 FROM generate_series(1, 10000) g;
INSERT INTO page (page_namespace, page_title)
  SELECT g % 4, 'Title_' || g FROM generate_series(1, 2000) g;
INSERT INTO items SELECT g, g / 10, 'item ' || g FROM generate_series(1, 2000) g;
INSERT INTO history_uint
  SELECT 1 + g % 1000, 1650000000 + g, g, g FROM generate_series(1, 2000) g;
INSERT INTO icinga_servicestatus (instance_id, service_object_id)
  SELECT 1, g FROM generate_series(1, 500) g;
INSERT INTO tenant_note (tenant, note)
  SELECT g % 5, 'note ' || g FROM generate_series(1, 2000) g;
CREATE TABLE pgautoprep_bench_t1.invoice (id serial PRIMARY KEY, customer int NOT NULL,
  total numeric(10,2) NOT NULL);
CREATE TABLE pgautoprep_bench_t2.invoice (id serial PRIMARY KEY, customer int NOT NULL,
  total numeric(10,2) NOT NULL);
CREATE INDEX ON pgautoprep_bench_t1.invoice (customer);
CREATE INDEX ON pgautoprep_bench_t2.invoice (customer);
INSERT INTO pgautoprep_bench_t1.invoice (customer, total)
  SELECT g % 500, g FROM generate_series(1, 2000) g;
INSERT INTO pgautoprep_bench_t2.invoice (customer, total)
  SELECT g % 500, 2 * g FROM generate_series(1, 2000) g;
GRANT USAGE ON SCHEMA pgautoprep_bench TO pg_monitor;
GRANT ALL ON ALL TABLES IN SCHEMA pgautoprep_bench TO pg_monitor;
VACUUM ANALYZE auth_user, django_session, blog_post, blog_comment, stock, page, items,
  history_uint, icinga_servicestatus, tenant_note, pgautoprep_bench_t1.invoice,
  pgautoprep_bench_t2.invoice;
