# The pg gem: a login at each door that is named, and a few statements behind it.
require 'pg'

def visit(place)
  connection = PG.connect(place)
  name = nil
  3.times { name = connection.exec("SELECT relname FROM pg_class WHERE relname = 'pg_type'").getvalue(0, 0) }
  total = connection.exec_params('SELECT 40 + $1::int', [2]).getvalue(0, 0)
  connection.close
  "#{name} #{total}"
end

ARGV.each do |place|
  puts visit(place)
rescue PG::Error => e
  puts "refused #{e.message.strip.tr("\n", ' ')}"
end
