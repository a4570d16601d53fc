#!/bin/sh
# Runs once, when the volume is new: the roles that no service may make for itself.
set -eu
: "${HUB_DB_PASSWORD:=$(cat "${HUB_DB_PASSWORD_FILE:-/dev/null}")}"
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" -f /bootstrap.sql
for role in hub hub_gateway hub_auth hub_query hub_authoring hub_review_control hub_admin hub_payments hub_audit; do
  psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" -v role="$role" -v password="$HUB_DB_PASSWORD" <<'SQL'
SELECT format('CREATE ROLE %I', :'role') WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'role') \gexec
ALTER ROLE :"role" LOGIN PASSWORD :'password';
SELECT format('GRANT hub_service TO %I', :'role') WHERE :'role' NOT IN ('hub', 'hub_audit') \gexec
SQL
done
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" -c 'CREATE DATABASE hub OWNER hub'
# No role but the owner makes anything there, not even temporarily.
psql -v ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname hub -c 'REVOKE TEMPORARY ON DATABASE hub FROM PUBLIC' -c 'REVOKE CREATE ON SCHEMA public FROM PUBLIC'
