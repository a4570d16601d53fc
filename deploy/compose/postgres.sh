#!/bin/sh
# Runs once, when the volume is new: the roles that no service may make for itself, and the database. Behind each role stand the
# connections of one of its processes; it may have HUB_DB_PODS times as many: at most so many run at once, the one that comes
# and the one that drains of a rolling release among them. max_connections has to have room for all.
set -eu
: "${HUB_DB_PASSWORD:=$(cat "${HUB_DB_PASSWORD_FILE:-/dev/null}")}"
: "${HUB_DB_PODS:=8}" "${HUB_BOOTSTRAP:=/bootstrap.sql}"
for login in hub:0 hub_gateway:4 hub_auth:10 hub_query:10 hub_authoring:10 hub_review_control:14 hub_admin:10 hub_payments:30 hub_audit:6; do
  psql -qAt -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" -v role="${login%:*}" -v password="$HUB_DB_PASSWORD" \
    -v connections="$((${login#*:} * HUB_DB_PODS))" -f "$HUB_BOOTSTRAP" -f - <<'SQL'
SELECT pg_temp.hub_login(:'role', :'password', :connections);
SQL
done
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" -c 'CREATE DATABASE hub OWNER hub'
psql -qAt -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname hub -f "$HUB_BOOTSTRAP" -c 'SELECT pg_temp.hub_seal()'
