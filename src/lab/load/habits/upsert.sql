\set sku :client_id * 100 + random(1, 90)
\set n random(1, 9)
-- expect BEGIN
BEGIN;
-- repeat 3
\set sku :sku + 1
-- expect SELECT 1, SKU:sku
SELECT "stock"."sku", "stock"."quantity" FROM "pgautoprep_bench"."stock" WHERE "stock"."sku" = 'SKU:sku' LIMIT 21 FOR UPDATE;
-- expect UPDATE 1
UPDATE pgautoprep_bench.stock SET quantity = quantity - :n WHERE sku = 'SKU:sku';
-- expect INSERT 0 1
INSERT INTO pgautoprep_bench.stock (sku, quantity) VALUES ('NEW:sku', :n) ON CONFLICT (sku) DO UPDATE SET quantity = stock.quantity + excluded.quantity;
-- end repeat
-- expect INSERT 0 1
INSERT INTO pgautoprep_bench.audit (what) VALUES ('order :sku') ON CONFLICT DO NOTHING;
-- expect COMMIT
COMMIT;
