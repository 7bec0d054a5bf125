\set title random(1, 1990)
\set id random(1, 1990)
\set space :title % 4
\set long random(100, 9999)
-- expect SET
SET client_encoding = 'UTF8';
-- expect SET
SET datestyle = 'ISO, YMD';
-- expect SET
SET timezone = 'GMT';
-- expect SET
SET standard_conforming_strings = on;
-- expect SET
SET bytea_output = 'escape';
-- repeat 6
-- expect SELECT 1, :title
SELECT /* LinkCache::fetchPageRow  */  page_id,page_len,page_latest  FROM pgautoprep_bench."page"     WHERE page_namespace = :space AND page_title = 'Title_:title'  LIMIT 1  ;
-- expect SELECT 1, :id
SELECT /* WikiPage::pageData  */  page_id,page_namespace,page_title,page_touched FROM pgautoprep_bench."page"    WHERE page_id = :id  LIMIT 1  ;
\set title :title + 1
\set space :title % 4
\set id :id + 1
-- end repeat
-- expect BEGIN
BEGIN;
-- expect UPDATE 1
UPDATE /* WikiPage::updateRevisionOn  */ pgautoprep_bench."page" SET page_latest = :long,page_touched = '2024-05-01 10:00:00+00',page_len = :long WHERE page_id = :id;
-- expect COMMIT
COMMIT;
