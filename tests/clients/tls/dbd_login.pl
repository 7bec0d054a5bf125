# DBD::Pg: a login at each door that is named, and a few statements behind it.
use strict;
use warnings;
use DBI;

sub visit {
    my ($place) = @_;
    my $source = 'dbi:Pg:' . join(';', split(/ /, $place));
    my $dbh = DBI->connect($source, undef, undef, { RaiseError => 1, PrintError => 0 });
    my $name;
    for (1 .. 3) {
        ($name) = $dbh->selectrow_array("SELECT relname FROM pg_class WHERE relname = 'pg_type'");
    }
    my ($total) = $dbh->selectrow_array('SELECT 40 + ?::int', undef, 2);
    $dbh->disconnect;
    return "$name $total";
}

for my $place (@ARGV) {
    my $seen = eval { visit($place) };
    if (!defined $seen) {
        $seen = "refused $@";
        $seen =~ s/\s+/ /g;
    }
    print "$seen\n";
}
