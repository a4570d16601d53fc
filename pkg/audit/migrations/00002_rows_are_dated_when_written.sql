-- +goose Up
-- A service's role had ways around the log: a temporary domain that shadowed a type of a function which runs as
-- the owner, and rows dated as it liked.

-- Temporary objects shadow types and tables of functions whose search_path does not name pg_temp last. No service
-- needs any.
-- +goose StatementBegin
DO $$
BEGIN
  EXECUTE pg_catalog.format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', pg_catalog.current_database());
  IF pg_catalog.to_regnamespace('public') IS NOT NULL THEN
    REVOKE CREATE ON SCHEMA public FROM PUBLIC;
  END IF;
END
$$;
-- +goose StatementEnd

ALTER FUNCTION audit.refuse_change() SET search_path = pg_catalog, pg_temp;
REVOKE ALL ON FUNCTION audit.refuse_change() FROM PUBLIC;

-- +goose StatementBegin
CREATE OR REPLACE FUNCTION audit.ensure_partitions(months integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  first pg_catalog.date := pg_catalog.date_trunc('month', pg_catalog.now() AT TIME ZONE 'UTC')::pg_catalog.date;
  month pg_catalog.date;
  name  pg_catalog.text;
BEGIN
  PERFORM pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtext('audit.ensure_partitions'));
  FOR i IN 0 .. least(months, 24) LOOP
    month := first + pg_catalog.make_interval(months => i);
    name := 'calls_' || pg_catalog.to_char(month, 'YYYY_MM');
    IF pg_catalog.to_regclass('audit.' || name) IS NULL THEN
      EXECUTE pg_catalog.format('CREATE TABLE audit.%I PARTITION OF audit.calls FOR VALUES FROM (%L) TO (%L)',
        name, month::pg_catalog.text || ' 00:00:00+00', (month + '1 month'::pg_catalog.interval)::pg_catalog.date::pg_catalog.text || ' 00:00:00+00');
      EXECUTE pg_catalog.format('CREATE TRIGGER calls_no_truncate BEFORE TRUNCATE ON audit.%I FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change()', name);
    END IF;
  END LOOP;
END
$$;
-- +goose StatementEnd

-- Which database role wrote the row: a service may name any caller, but not another writer. Rows from before this
-- have none.
ALTER TABLE audit.calls ADD COLUMN writer text NOT NULL DEFAULT '';
ALTER TABLE audit.calls ALTER COLUMN writer SET DEFAULT session_user;
REVOKE INSERT ON audit.calls FROM hub_service;
GRANT INSERT (at, request_id, service, external_user_id, credential_id, tool, outcome, count, took_ms, input_hash, detail) ON audit.calls TO hub_service;

-- A row is dated when it is written, or up to five minutes before: queued rows wait for a store that is away. It
-- is never dated later; a clock that is up to five seconds ahead of this one is taken for now.
-- +goose StatementBegin
CREATE FUNCTION audit.date_row() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  moment pg_catalog.timestamptz := pg_catalog.clock_timestamp();
BEGIN
  IF NEW.at NOT BETWEEN moment - '5 minutes'::pg_catalog.interval AND moment + '5 seconds'::pg_catalog.interval THEN
    RAISE EXCEPTION 'a row of the audit log is dated when it is written' USING ERRCODE = 'insufficient_privilege';
  END IF;
  NEW.at := least(NEW.at, moment);
  RETURN NEW;
END
$$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION audit.date_row() FROM PUBLIC;
CREATE TRIGGER calls_dated BEFORE INSERT ON audit.calls FOR EACH ROW
  WHEN (NEW.at NOT BETWEEN clock_timestamp() - interval '5 minutes' AND clock_timestamp()) EXECUTE FUNCTION audit.date_row();
