-- What a superuser does once per cluster, under the lock that Bootstrap holds.
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
