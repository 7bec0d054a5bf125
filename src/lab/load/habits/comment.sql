\set about random(5001, 9990)
\set writer random(1, 2000)
-- expect INSERT 0 1
INSERT INTO "pgautoprep_bench"."blog_comment" ("post_id", "user_id", "body", "approved") VALUES (:about, :writer, 'It''s comment :usec', false) RETURNING "blog_comment"."id";
