\set item random(1001, 1990)
\set item2 :item + 1
\set item3 :item + 2
\set item4 :item + 3
\set item5 :item + 4
\set clock random(1700000000, 1800000000)
\set ns random(1, 999999999)
\set value random(1, 1000000)
\set host random(1, 199)
\set firstitem 10 * :host
\set old random(1, 1000)
-- expect BEGIN
begin;
-- expect INSERT 0 3
insert into pgautoprep_bench.history_uint (itemid,clock,ns,value) values (:item,:clock,:ns,:value),(:item2,:clock,:ns,:value),(:item3,:clock,:ns,:value);
-- expect COMMIT
commit;
-- expect SELECT 10, :firstitem
select itemid,name,status from pgautoprep_bench.items where hostid=:host order by itemid;
-- expect SELECT 2
select clock,ns,value from pgautoprep_bench.history_uint where itemid=:old and clock>1600000000;
-- expect BEGIN
begin;
-- expect INSERT 0 5
insert into pgautoprep_bench.history_uint (itemid,clock,ns,value) values (:item,:clock,:ns,:value),(:item2,:clock,:ns,:value),(:item3,:clock,:ns,:value),(:item4,:clock,:ns,:value),(:item5,:clock,:ns,:value);
-- expect COMMIT
commit;
