# The pg gem: exec, exec_params, prepared statements, single-row mode, pipelines and COPY.
require 'json'
require 'pg'

def read(name)
  File.read(File.join(__dir__, name), encoding: 'UTF-8')
end

def show(result)
  columns = result.fields.each_index.map do |k|
    type = result.ftype(k)
    own = result.ftable(k) > 0
    [result.fields[k], type < 16_384 ? type : 'own', result.fmod(k), result.fsize(k), own, result.ftablecol(k)]
  end
  puts "#{result.cmd_status} #{JSON.generate([columns, result.values])}"
end

def attempt(connection)
  show(yield)
rescue PG::Error => e
  fields = %w[SEVERITY SQLSTATE MESSAGE_PRIMARY MESSAGE_DETAIL MESSAGE_HINT STATEMENT_POSITION CONTEXT
              INTERNAL_QUERY SCHEMA_NAME TABLE_NAME COLUMN_NAME DATATYPE_NAME CONSTRAINT_NAME]
  values = fields.map { |field| e.result&.error_field(PG.const_get("PG_DIAG_#{field}")) }
  puts "error #{JSON.generate(values)} #{connection.transaction_status}"
end

connection = PG.connect(host: ENV.fetch('PGHOST'))
connection.set_notice_processor { |text| puts "  #{text}" }
connection.exec(read('setup.sql'))
statements = read('statements.sql').lines(chomp: true)
(1..8).each do |n|
  statements.each { |sql| attempt(connection) { connection.exec(sql.gsub('@n@', n.to_s)) } }
  word = connection.escape_literal("it's \\ ü #{n}")
  attempt(connection) { connection.exec("SELECT id, #{word} AS w FROM items WHERE id = #{n}") }
  bytes = connection.escape_bytea("\x00\xff'\\".b)
  attempt(connection) { connection.exec("UPDATE every SET by = '#{bytes}' WHERE id = #{n} RETURNING by") }
  attempt(connection) { connection.exec_params('SELECT name FROM items WHERE id = $1', [n]) }
  connection.prepare("own #{n}", 'SELECT name FROM items WHERE id = $1')
  attempt(connection) { connection.exec_prepared("own #{n}", [n]) }
  connection.send_query("SELECT id FROM items WHERE id < 1#{n} ORDER BY id")
  connection.set_single_row_mode
  puts connection.get_result.stream_each_row.to_a.flatten.join(' ')
  connection.get_result
  connection.copy_data("COPY items FROM STDIN") { connection.put_copy_data("#{7000 + n}\tcopied\t1\t2.5\n") }
  connection.copy_data("COPY (SELECT * FROM items WHERE id = #{7000 + n}) TO STDOUT") do
    while (row = connection.get_copy_data)
      puts row
    end
  end
  begin
    connection.transaction do
      attempt(connection) { connection.exec("DELETE FROM items WHERE id = #{7000 + n}") }
      raise PG::RollbackTransaction if PG.const_defined?(:RollbackTransaction)
      raise 'leave'
    end
  rescue RuntimeError
    puts 'left'
  end
  attempt(connection) { connection.exec("SELECT count(*) FROM items WHERE id = #{7000 + n}") }
  connection.exec('LISTEN word')
  connection.exec("NOTIFY word, 'payload #{n}'")
  connection.wait_for_notify(5) { |channel, _, payload| puts "#{channel} #{payload}" }
  connection.exec('UNLISTEN word')
end
changes = read('changes.sql').lines(chomp: true)
(1..8).each do |n|
  changes.each { |sql| attempt(connection) { connection.exec(sql.gsub('@n@', n.to_s)) } }
end
connection.close
