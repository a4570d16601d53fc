-- What a superuser does once per cluster, and may repeat: the roles that every write store has, and two functions, of this
-- session alone, for the log-ins and for the database. postgres.Bootstrap and deploy/compose/postgres.sh do no more than call them.
DO $$
DECLARE
  other name;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hub') THEN
    CREATE ROLE hub LOGIN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hub_service') THEN
    CREATE ROLE hub_service NOLOGIN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hub_audit') THEN
    CREATE ROLE hub_audit NOLOGIN;
  END IF;
  ALTER ROLE hub_audit SET default_transaction_read_only = on;
  -- A database that anybody may enter is one to fill the disk from, and to take locks in.
  FOR other IN SELECT datname FROM pg_database WHERE datname IN ('postgres', 'template1') AND has_database_privilege('hub_service', oid, 'CONNECT') LOOP
    EXECUTE format('REVOKE CONNECT, TEMPORARY ON DATABASE %I FROM PUBLIC', other);
  END LOOP;
END
$$;

-- hub_login makes a role that may log in, or changes its password: the owner, a service or the audit log's reader. connections is
-- how many it may have at a time, so that no service takes those of the others; 0 for as many as there are.
CREATE OR REPLACE FUNCTION pg_temp.hub_login(role text, password text, connections integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
    EXECUTE format('CREATE ROLE %I', role);
  END IF;
  EXECUTE format('ALTER ROLE %I LOGIN PASSWORD %L CONNECTION LIMIT %s', role, password, coalesce(nullif(connections, 0), -1));
  IF role = 'hub' THEN
    RETURN;
  END IF;
  -- What a connection sets by itself, unless a pooler is in between. The reader reads months.
  EXECUTE format('ALTER ROLE %I SET statement_timeout = %L', role, CASE role WHEN 'hub_audit' THEN '30s' ELSE '10s' END);
  EXECUTE format('ALTER ROLE %I SET idle_in_transaction_session_timeout = %L', role, '30s');
  -- Of the disk for what does not fit into memory; a role may not change it.
  EXECUTE format('ALTER ROLE %I SET temp_file_limit = %L', role, '1GB');
  IF role <> 'hub_audit' THEN
    EXECUTE format('GRANT hub_service TO %I', role);
  END IF;
END
$$;

-- hub_seal takes from PUBLIC what PostgreSQL gives it in the database of this session: temporary objects, which shadow those
-- that the owner's functions mean; before PostgreSQL 15 the schema public; large objects and messages in the log of
-- changes, which fill the disk of all.
CREATE OR REPLACE FUNCTION pg_temp.hub_seal() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  f regprocedure;
BEGIN
  EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
  IF to_regnamespace('public') IS NOT NULL THEN
    REVOKE CREATE ON SCHEMA public FROM PUBLIC;
  END IF;
  FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
    AND proname ~ '^(lo_.*|loread|lowrite|pg_logical_emit_message)$' AND has_function_privilege('hub_service', oid, 'EXECUTE')
  LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
  END LOOP;
END
$$;
