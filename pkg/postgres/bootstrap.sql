-- What a superuser does once per cluster. Two runs at the same moment are safe.
SELECT pg_advisory_lock(hashtext('hub bootstrap'));
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hub') THEN
    CREATE ROLE hub LOGIN;
  END IF;
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'hub_service') THEN
    CREATE ROLE hub_service NOLOGIN;
  END IF;
END
$$;
SELECT pg_advisory_unlock(hashtext('hub bootstrap'));
