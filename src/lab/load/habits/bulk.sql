\set about random(5001, 9990)
\set writer random(1, 2000)
\set n random(1, 1000000)
-- expect BEGIN
BEGIN;
-- expect INSERT 0 20
INSERT INTO pgautoprep_bench.blog_comment (post_id, user_id, body, approved) SELECT p0::BIGINT, p1::INTEGER, p2::VARCHAR, p3::BOOLEAN FROM (VALUES (:about, :writer, 'text :n.0', false, 0), (:about, :writer, 'text :n.1', false, 1), (:about, :writer, 'text :n.2', false, 2), (:about, :writer, 'text :n.3', false, 3), (:about, :writer, 'text :n.4', false, 4), (:about, :writer, 'text :n.5', false, 5), (:about, :writer, 'text :n.6', false, 6), (:about, :writer, 'text :n.7', false, 7), (:about, :writer, 'text :n.8', false, 8), (:about, :writer, 'text :n.9', false, 9), (:about, :writer, 'text :n.10', false, 10), (:about, :writer, 'text :n.11', false, 11), (:about, :writer, 'text :n.12', false, 12), (:about, :writer, 'text :n.13', false, 13), (:about, :writer, 'text :n.14', false, 14), (:about, :writer, 'text :n.15', false, 15), (:about, :writer, 'text :n.16', false, 16), (:about, :writer, 'text :n.17', false, 17), (:about, :writer, 'text :n.18', false, 18), (:about, :writer, 'text :n.19', false, 19)) AS imp_sen(p0, p1, p2, p3, sen_counter) ORDER BY sen_counter RETURNING blog_comment.id, blog_comment.id AS id__1;
-- expect COMMIT
COMMIT;
