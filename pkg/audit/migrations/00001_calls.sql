-- +goose Up
-- The append-only audit log. A service's role may insert and nothing else; the
-- triggers hold even for the owner.
CREATE TABLE audit.calls (
  id               uuid        NOT NULL DEFAULT gen_random_uuid(),
  at               timestamptz NOT NULL,
  request_id       text        NOT NULL,
  service          text        NOT NULL DEFAULT '',
  external_user_id text        NOT NULL DEFAULT '',
  credential_id    text        NOT NULL DEFAULT '',
  tool             text        NOT NULL,
  outcome          text        NOT NULL,
  count            integer     NOT NULL DEFAULT 0,
  took_ms          integer     NOT NULL DEFAULT 0,
  input_hash       bytea,
  detail           jsonb,
  PRIMARY KEY (id, at)
) PARTITION BY RANGE (at);
CREATE INDEX calls_at ON audit.calls (at DESC);
CREATE INDEX calls_request ON audit.calls (request_id);
CREATE INDEX calls_credential ON audit.calls (credential_id, at DESC);

-- +goose StatementBegin
CREATE FUNCTION audit.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the audit log is append-only' USING ERRCODE = 'insufficient_privilege';
END
$$;
-- +goose StatementEnd
CREATE TRIGGER calls_append_only BEFORE UPDATE OR DELETE ON audit.calls FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER calls_no_truncate BEFORE TRUNCATE ON audit.calls FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();

-- A service makes the coming months' partitions without owning the table. Each
-- partition refuses TRUNCATE by itself: row triggers are inherited, that one is not.
-- +goose StatementBegin
CREATE FUNCTION audit.ensure_partitions(months integer) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$
DECLARE
  first date := date_trunc('month', now() AT TIME ZONE 'UTC')::date;
  month date;
  name  text;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtext('audit.ensure_partitions'));
  FOR i IN 0 .. least(months, 24) LOOP
    month := first + make_interval(months => i);
    name := 'calls_' || to_char(month, 'YYYY_MM');
    IF to_regclass('audit.' || name) IS NULL THEN
      EXECUTE format('CREATE TABLE audit.%I PARTITION OF audit.calls FOR VALUES FROM (%L) TO (%L)',
        name, month::text || ' 00:00:00+00', (month + interval '1 month')::date::text || ' 00:00:00+00');
      EXECUTE format('CREATE TRIGGER calls_no_truncate BEFORE TRUNCATE ON audit.%I FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change()', name);
    END IF;
  END LOOP;
END
$$;
-- +goose StatementEnd
SELECT audit.ensure_partitions(13);

REVOKE ALL ON FUNCTION audit.ensure_partitions(integer) FROM PUBLIC;
GRANT USAGE ON SCHEMA audit TO hub_service;
GRANT INSERT ON audit.calls TO hub_service;
GRANT EXECUTE ON FUNCTION audit.ensure_partitions(integer) TO hub_service;
