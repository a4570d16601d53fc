-- +goose Up
-- A month's table is made apart and attached, which waits for nobody who reads or writes the log: a table that is made
-- in its place waits for all of them, and everybody else behind it. The owner makes them when it migrates, and the log's reader
-- asks for them each day. A service's role needs none of it; that of a release before this is told so, and goes on.
-- +goose StatementBegin
CREATE OR REPLACE FUNCTION audit.ensure_partitions(months integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s' AS $$
DECLARE
  first pg_catalog.date := pg_catalog.date_trunc('month', pg_catalog.now() AT TIME ZONE 'UTC')::pg_catalog.date;
  month pg_catalog.date;
  name  pg_catalog.text;
BEGIN
  FOR i IN 0 .. least(months, 13) LOOP
    month := first + pg_catalog.make_interval(months => i);
    name := 'calls_' || pg_catalog.to_char(month, 'YYYY_MM');
    CONTINUE WHEN pg_catalog.to_regclass('audit.' || name) IS NOT NULL;
    -- One at a time; it is the lock that attaching takes.
    LOCK TABLE ONLY audit.calls IN SHARE UPDATE EXCLUSIVE MODE;
    CONTINUE WHEN pg_catalog.to_regclass('audit.' || name) IS NOT NULL;
    EXECUTE pg_catalog.format('CREATE TABLE audit.%I (LIKE audit.calls INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING STORAGE)', name);
    EXECUTE pg_catalog.format('CREATE TRIGGER calls_no_truncate BEFORE TRUNCATE ON audit.%I FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change()', name);
    EXECUTE pg_catalog.format('ALTER TABLE audit.calls ATTACH PARTITION audit.%I FOR VALUES FROM (%L) TO (%L)',
      name, month::pg_catalog.text || ' 00:00:00+00', (month + '1 month'::pg_catalog.interval)::pg_catalog.date::pg_catalog.text || ' 00:00:00+00');
  END LOOP;
END
$$;
-- +goose StatementEnd
REVOKE EXECUTE ON FUNCTION audit.ensure_partitions(integer) FROM hub_service;

CREATE FUNCTION audit.extend() RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
  AS 'SELECT audit.ensure_partitions(13)';
REVOKE ALL ON FUNCTION audit.extend() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION audit.extend() TO hub_audit;

-- Nobody waits longer behind the other two, whatever the session that calls them has set.
ALTER FUNCTION audit.roll_up() SET lock_timeout = '10s';
ALTER FUNCTION audit.expire() SET lock_timeout = '2s';
