# DBD::Pg with server-side prepares switched off, and with them.
use strict;
use warnings;
use DBI qw(:sql_types);
use DBD::Pg qw(:pg_types);
use Data::Dumper;
use FindBin;

$Data::Dumper::Indent = 0;
$Data::Dumper::Terse = 1;
$Data::Dumper::Sortkeys = 1;
binmode STDOUT, ':encoding(UTF-8)';
$SIG{__WARN__} = sub { print "warning @_" };

sub slurp {
    open my $file, '<:encoding(UTF-8)', "$FindBin::Bin/$_[0]" or die $!;
    local $/;
    return <$file>;
}

my $dbh = DBI->connect('dbi:Pg:', '', '', { PrintError => 0, RaiseError => 0, AutoCommit => 1, pg_server_prepare => 0 });
die $DBI::errstr unless $dbh;

sub run {
    my ($sql, $attributes, @values) = @_;
    my $sth = $dbh->prepare($sql, { pg_direct => 1, %$attributes });
    my $rows = $sth ? $sth->execute(@values) : undef;
    if (!defined $rows) {
        print 'error ', $dbh->state, ' ', $dbh->errstr, "\n";
        return;
    }
    print "$rows ";
    print Dumper([ $sth->{NAME}, $sth->{TYPE}, $sth->fetchall_arrayref ]) if $sth->{NUM_OF_FIELDS};
    print "\n";
}

$dbh->do(slurp('setup.sql')) or die $dbh->errstr;
my @statements = split /\n/, slurp('statements.sql');
for my $n (1 .. 8) {
    for my $template (@statements) {
        (my $sql = $template) =~ s/\@n\@/$n/g;
        run($sql, {});
    }
    for my $server (0, 1) {
        my %how = (pg_direct => 0, pg_server_prepare => $server);
        run('SELECT id, name FROM items WHERE id = ? AND name <> ?', \%how, $n, "it's \\");
        run('SELECT ?::text, ?::int, ?::bool, ?::text', \%how, "\x{fc}\x{2603}", $n, 't', undef);
        run('SELECT id FROM items WHERE id = ?', \%how, "abc$n");
        run('UPDATE every SET ta = ?, t = ? WHERE id = ? RETURNING ta, t', \%how, [ 'a', "b'c", undef ], undef, $n);
    }
    my $sth = $dbh->prepare('UPDATE every SET by = ? WHERE id = ? RETURNING by', { pg_server_prepare => 0 });
    $sth->bind_param(1, "\x00\xff'", { pg_type => PG_BYTEA });
    $sth->bind_param(2, $n, SQL_INTEGER);
    $sth->execute;
    print unpack('H*', $sth->fetchrow_array), "\n";
    $dbh->begin_work;
    $dbh->pg_savepoint('s');
    run('SELECT 1 / (?::int - ?::int)', { pg_direct => 0 }, $n, $n);
    $dbh->pg_rollback_to('s');
    run('SELECT name FROM items WHERE id = ?', { pg_direct => 0 }, $n);
    $dbh->commit;
    $dbh->do("COPY items FROM STDIN");
    $dbh->pg_putcopydata(join("\t", 7000 + $n, 'copied', 1, '2.5') . "\n");
    $dbh->pg_putcopyend;
    run("SELECT * FROM items WHERE id = 700$n", {});
    $dbh->do('LISTEN word');
    $dbh->do("NOTIFY word, 'payload $n'");
    my $notify = $dbh->pg_notifies;
    print $notify ? "$notify->[0] $notify->[2]\n" : "no notification\n";
    $dbh->do('UNLISTEN word');
}
for my $n (1 .. 8) {
    for my $template (split /\n/, slurp('changes.sql')) {
        (my $sql = $template) =~ s/\@n\@/$n/g;
        run($sql, {});
    }
}
$dbh->disconnect;
