#!/bin/sh
# The role of 2-role.sql gets the password that stands in the connection string of streamdp.
set -eu
password=$(sed -n 's/.*password=\([^ ]*\).*/\1/p' /run/secrets/warehouse_connection)
psql --username postgres --dbname warehouse --set password="$password" <<'SQL'
ALTER ROLE streamdp PASSWORD :'password';
GRANT CONNECT ON DATABASE warehouse TO streamdp;
SQL
