\set a random(1, 2000000000)
\set b :a + 1
\set c :a + 2
\set d :a + 3
\set e :a + 4
\set f :a + 5
\set g :a + 6
\set h :a + 7
\set i :a + 8
\set j :a + 9
-- expect INSERT 0 10
INSERT INTO pgautoprep_bench.p VALUES (:a, 'test', now()), (:b, 'test', now()), (:c, 'test', now()),
  (:d, 'test', now()), (:e, 'test', now()), (:f, 'test', now()), (:g, 'test', now()),
  (:h, 'test', now()), (:i, 'test', now()), (:j, 'test', now());
