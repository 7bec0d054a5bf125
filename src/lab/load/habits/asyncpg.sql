-- expect RESET
SELECT pg_advisory_unlock_all()\;
CLOSE ALL\;
UNLISTEN *\;
RESET ALL;
