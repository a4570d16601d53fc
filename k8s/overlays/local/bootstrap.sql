-- What a superuser does once per cluster, under the lock that Bootstrap holds.
DO $$
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
END
$$;
