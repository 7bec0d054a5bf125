-- Hibernate with preferQueryMode=simple.
select o1_0.id,o1_0.currency,o1_0.customer_id,o1_0.placed_on,o1_0.state,o1_0.total,o1_0.version from orders o1_0 where o1_0.id='@order@'
select oi1_0.order_id,oi1_0.id,oi1_0.price,oi1_0.quantity,oi1_0.sku from order_items oi1_0 where oi1_0.order_id='@order@'
update orders set currency='EUR',customer_id=@user@,placed_on='2024-05-@day@',state='paid',total=10.50,version=@quantity@ where id='@order@' and version=0
insert into order_items (order_id,price,quantity,sku) values ('@order@',9.99,@quantity@,'SKU@category@')
insert into orders (currency,customer_id,placed_on,state,total,version,id) values ('USD',@user@,'2024-08-@day@','new',99.90,0,'9@number@-0000-4000-8000-000000000000')
select nextval('hibernate_sequence')
select count(o1_0.id) from orders o1_0 where o1_0.customer_id=@user@ and o1_0.state='paid'
select o1_0.id,c1_0.username from orders o1_0 join auth_user c1_0 on c1_0.id=o1_0.customer_id where o1_0.customer_id=@user@ order by o1_0.placed_on desc offset 0 rows fetch first 10 rows only
select o1_0.id from orders o1_0 where o1_0.placed_on between '2024-01-@day@' and '2024-02-@day@' and o1_0.customer_id=@user@
select distinct o1_0.state from orders o1_0 where o1_0.customer_id=@user@ and (o1_0.total>100 or o1_0.currency='EUR')
delete from order_items where id=@post@
delete from order_items where order_id='@order@' and sku='SKU@category@'
select p1_0.id,p1_0.title from blog_post p1_0 where lower(p1_0.slug)=lower('POST-@post@') fetch first 1 rows only
select case when (count(u1_0.id)>0) then true else false end from auth_user u1_0 where u1_0.username='user@user@'
select u1_0.id,u1_0.username,u1_0.email from auth_user u1_0 where u1_0.id=@user@ for no key update
select p1_0.id,p1_0.title,a1_0.id,a1_0.username from blog_post p1_0 left join auth_user a1_0 on a1_0.id=p1_0.author_id where p1_0.category_id=@category@ and p1_0.views>@offset@ order by p1_0.id desc fetch first 20 rows only
select p1_0.id from blog_post p1_0 where p1_0.author_id=@user@ and p1_0.title like '%1%' escape '\'
select p1_0.id from blog_post p1_0 where p1_0.author_id=@user@ and exists(select 1 from blog_comment c1_0 where c1_0.post_id=p1_0.id and c1_0.approved=true)
select p1_0.category_id,count(*),avg(p1_0.rating) from blog_post p1_0 where p1_0.author_id=@user@ group by p1_0.category_id having count(*)>=1
select u1_0.id from auth_user u1_0 where u1_0.id in (@user@,@user2@,@user3@)
select o1_0.id from orders o1_0 where o1_0.customer_id=@user@ and o1_0.total>(select avg(o2_0.total) from orders o2_0 where o2_0.customer_id=@user2@)
update auth_user set last_login='2024-05-@day@ 12:00:00+00' where id=@user@
select c1_0.id,cast(c1_0.created_at as date) from blog_comment c1_0 where c1_0.post_id=@post@ and c1_0.user_id is not null
select coalesce(sum(oi1_0.price*oi1_0.quantity),0) from order_items oi1_0 where oi1_0.order_id='@order@'
