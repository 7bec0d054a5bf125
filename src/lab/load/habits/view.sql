\set seen random(5001, 9990)
-- expect UPDATE 1
UPDATE "pgautoprep_bench"."blog_post" SET "views" = ("blog_post"."views" + 1) WHERE "blog_post"."id" = :seen;
