-- +goose Up
-- The log gets a reader, roll-ups for its overview, and an end of what is kept. No service's role may do more than
-- before, except to say which trace a row belongs to.

-- A superuser makes the role (postgres.Bootstrap): an owner may not.
-- +goose StatementBegin
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'hub_audit') THEN
    RAISE EXCEPTION 'the role hub_audit is missing: run pkg/postgres/bootstrap.sql as a superuser again';
  END IF;
END
$$;
-- +goose StatementEnd

ALTER TABLE audit.calls ADD COLUMN trace_id text NOT NULL DEFAULT '';
GRANT INSERT (trace_id) ON audit.calls TO hub_service;

-- What people search by. Each costs every row that it holds; hence the conditions.
CREATE INDEX calls_tool ON audit.calls (tool, at DESC);
CREATE INDEX calls_user ON audit.calls (external_user_id, at DESC) WHERE external_user_id <> '';
CREATE INDEX calls_failed ON audit.calls (outcome, at DESC) WHERE outcome <> 'ok';
CREATE INDEX calls_draft ON audit.calls ((detail ->> 'draft_id'), at DESC) WHERE detail ->> 'draft_id' IS NOT NULL;

-- measured is the log in the terms of the overview: how many calls a row stands for, and how long they took, by the
-- bounds of buckets in milliseconds. What was refused, and what people did in the console, took no time worth a
-- measure: bucket 0. A tally counts many refusals in a row; whatever else is in there is no number of ours.
CREATE VIEW audit.measured AS
  SELECT at, tool, outcome, credential_id, 1::bigint AS calls,
    (CASE WHEN outcome IN ('ok', 'E_DB', 'E_DB_TIMEOUT', 'E_INTERNAL') AND strpos(tool, '.') = 0 THEN
      width_bucket(took_ms, ARRAY[0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000,
        7000, 10000, 15000, 20000, 30000, 60000]) ELSE 0 END)::smallint AS bucket
  FROM audit.calls WHERE tool NOT IN ('calls.refused', 'session.refused')
  UNION ALL
  SELECT c.at, c.tool, o.key, c.credential_id, CASE WHEN o.value ~ '^[0-9]{1,9}$' THEN o.value::bigint ELSE 0 END, 0::smallint
  FROM audit.calls c CROSS JOIN LATERAL jsonb_each_text(
    CASE WHEN jsonb_typeof(c.detail -> 'outcomes') = 'object' THEN c.detail -> 'outcomes' ELSE '{}' END) o
  WHERE c.tool IN ('calls.refused', 'session.refused') AND o.key ~ '^[A-Z_]{1,40}$';

-- A grain is made of the next finer one: 5m of the log, hour of 5m, day of hour. until is where it ends.
CREATE TABLE audit.watermarks (
  grain text        NOT NULL PRIMARY KEY CHECK (grain IN ('5m', 'hour', 'day')),
  until timestamptz NOT NULL
);
INSERT INTO audit.watermarks VALUES ('5m', '-infinity'), ('hour', '-infinity'), ('day', '-infinity');
CREATE TABLE audit.rollups (
  grain   text        NOT NULL,
  start   timestamptz NOT NULL,
  tool    text        NOT NULL, -- '' is all that are not among the 200 greatest of the period
  outcome text        NOT NULL,
  bucket  smallint    NOT NULL,
  calls   bigint      NOT NULL,
  PRIMARY KEY (grain, start, tool, outcome, bucket)
) PARTITION BY LIST (grain); -- what comes and goes each day leaves no holes in what is read for a year
CREATE TABLE audit.rollups_5m PARTITION OF audit.rollups FOR VALUES IN ('5m');
CREATE TABLE audit.rollups_hour PARTITION OF audit.rollups FOR VALUES IN ('hour');
CREATE TABLE audit.rollups_day PARTITION OF audit.rollups FOR VALUES IN ('day');
CREATE TABLE audit.rollup_callers (
  grain         text        NOT NULL,
  start         timestamptz NOT NULL,
  credential_id text        NOT NULL, -- '' is all that are not among the 100 greatest of the period, and who had none
  calls         bigint      NOT NULL,
  failed        bigint      NOT NULL,
  limited       bigint      NOT NULL,
  PRIMARY KEY (grain, start, credential_id)
) PARTITION BY LIST (grain);
CREATE TABLE audit.rollup_callers_5m PARTITION OF audit.rollup_callers FOR VALUES IN ('5m');
CREATE TABLE audit.rollup_callers_hour PARTITION OF audit.rollup_callers FOR VALUES IN ('hour');
CREATE TABLE audit.rollup_callers_day PARTITION OF audit.rollup_callers FOR VALUES IN ('day');
-- What is kept is the owner's to say, not that of whoever asks for the end.
CREATE TABLE audit.policy (
  one  boolean NOT NULL PRIMARY KEY DEFAULT true CHECK (one),
  days integer NOT NULL CHECK (days >= 62)
);
INSERT INTO audit.policy (days) VALUES (400);

-- roll_up_log makes the finest grain. A period has at most 200 tools and 100 callers, whatever names agents make up.
-- +goose StatementBegin
CREATE FUNCTION audit.roll_up_log(first timestamptz, upto timestamptz) RETURNS void LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  WITH part AS (
    SELECT date_bin('5 minutes', at, '2024-01-01 00:00+00') AS start, tool, outcome, bucket, sum(calls) AS calls
    FROM audit.measured WHERE at >= first AND at < upto GROUP BY 1, 2, 3, 4
  ), place AS (
    SELECT start, tool, row_number() OVER (PARTITION BY start ORDER BY sum(calls) DESC, tool) AS n FROM part GROUP BY 1, 2
  )
  INSERT INTO audit.rollups (grain, start, tool, outcome, bucket, calls)
    SELECT '5m', start, CASE WHEN n <= 200 THEN tool ELSE '' END, outcome, bucket, sum(calls)
    FROM part JOIN place USING (start, tool) GROUP BY 1, 2, 3, 4, 5;
  WITH part AS (
    SELECT date_bin('5 minutes', at, '2024-01-01 00:00+00') AS start, credential_id, sum(calls) AS calls,
      coalesce(sum(calls) FILTER (WHERE outcome <> 'ok'), 0) AS failed, coalesce(sum(calls) FILTER (WHERE outcome = 'E_RATE_LIMIT'), 0) AS limited
    FROM audit.measured WHERE at >= first AND at < upto AND (strpos(tool, '.') = 0 OR tool = 'calls.refused') GROUP BY 1, 2
  ), place AS (
    SELECT *, row_number() OVER (PARTITION BY start ORDER BY calls DESC, credential_id) AS n FROM part
  )
  INSERT INTO audit.rollup_callers (grain, start, credential_id, calls, failed, limited)
    SELECT '5m', start, CASE WHEN n <= 100 THEN credential_id ELSE '' END, sum(calls), sum(failed), sum(limited) FROM place GROUP BY 1, 2, 3;
$$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION audit.roll_up_finer(finer text, coarser text, step interval, first timestamptz, upto timestamptz) RETURNS void
LANGUAGE sql SET search_path = pg_catalog, pg_temp AS $$
  WITH part AS (
    SELECT date_bin(step, start, '2024-01-01 00:00+00') AS start, tool, outcome, bucket, sum(calls) AS calls
    FROM audit.rollups r WHERE grain = finer AND r.start >= first AND r.start < upto GROUP BY 1, 2, 3, 4
  ), place AS (
    SELECT start, tool, row_number() OVER (PARTITION BY start ORDER BY sum(calls) DESC, tool) AS n FROM part GROUP BY 1, 2
  )
  INSERT INTO audit.rollups (grain, start, tool, outcome, bucket, calls)
    SELECT coarser, start, CASE WHEN n <= 200 THEN tool ELSE '' END, outcome, bucket, sum(calls)
    FROM part JOIN place USING (start, tool) GROUP BY 1, 2, 3, 4, 5;
  WITH part AS (
    SELECT date_bin(step, start, '2024-01-01 00:00+00') AS start, credential_id, sum(calls) AS calls, sum(failed) AS failed, sum(limited) AS limited
    FROM audit.rollup_callers r WHERE grain = finer AND r.start >= first AND r.start < upto GROUP BY 1, 2
  ), place AS (
    SELECT *, row_number() OVER (PARTITION BY start ORDER BY calls DESC, credential_id) AS n FROM part
  )
  INSERT INTO audit.rollup_callers (grain, start, credential_id, calls, failed, limited)
    SELECT coarser, start, CASE WHEN n <= 100 THEN credential_id ELSE '' END, sum(calls), sum(failed), sum(limited) FROM place GROUP BY 1, 2, 3;
$$;
-- +goose StatementEnd

-- roll_up_at takes the next step, an hour of the log or twenty thousand rows but at most a day, and tells whether there is
-- another. A row may be dated five minutes in the past, and its transaction may take a little: a period is rolled up six
-- minutes after its end. The first watermark's lock lets one do it at a time, and what it has done is seen with where it
-- has come to.
-- +goose StatementBegin
CREATE FUNCTION audit.roll_up_at(moment timestamptz) RETURNS boolean LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  origin  CONSTANT timestamptz := '2024-01-01 00:00+00';
  horizon CONSTANT timestamptz := date_bin('5 minutes', moment - '6 minutes'::interval, origin);
  done  timestamptz;
  first timestamptz;
  upto  timestamptz;
  hours timestamptz;
  days  timestamptz;
BEGIN
  SELECT until INTO done FROM audit.watermarks WHERE grain = '5m' FOR UPDATE;
  IF done < horizon THEN
    SELECT min(at) INTO first FROM audit.calls WHERE at >= done AND at < horizon;
    first := greatest(done, coalesce(date_bin('5 minutes', first, origin), horizon));
    SELECT date_bin('5 minutes', at, origin) INTO upto FROM audit.calls WHERE at >= first AND at < horizon ORDER BY at OFFSET 20000 LIMIT 1;
    upto := least(horizon, first + '1 day'::interval, CASE WHEN upto IS NULL THEN horizon ELSE greatest(upto, first + '1 hour'::interval) END);
    PERFORM audit.roll_up_log(first, upto);
    UPDATE audit.watermarks SET until = upto WHERE grain = '5m';
    done := upto;
  END IF;

  SELECT until INTO hours FROM audit.watermarks WHERE grain = 'hour';
  upto := date_bin('1 hour', done, origin);
  IF hours < upto THEN
    PERFORM audit.roll_up_finer('5m', 'hour', '1 hour', hours, upto);
    UPDATE audit.watermarks SET until = upto WHERE grain = 'hour';
    hours := upto;
  END IF;

  SELECT until INTO days FROM audit.watermarks WHERE grain = 'day';
  upto := date_bin('1 day', hours, origin);
  IF days < upto THEN
    PERFORM audit.roll_up_finer('hour', 'day', '1 day', days, upto);
    UPDATE audit.watermarks SET until = upto WHERE grain = 'day';
    days := upto;
  END IF;

  -- Nothing goes before the coarser grain has it.
  DELETE FROM audit.rollups WHERE grain = '5m' AND start < least(moment - '8 days'::interval, hours);
  DELETE FROM audit.rollups WHERE grain = 'hour' AND start < least(moment - '35 days'::interval, days);
  DELETE FROM audit.rollup_callers WHERE grain = '5m' AND start < least(moment - '8 days'::interval, hours);
  DELETE FROM audit.rollup_callers WHERE grain = 'hour' AND start < least(moment - '35 days'::interval, days);
  RETURN done < horizon;
END
$$;
-- +goose StatementEnd

-- expire_at drops the months that lie wholly before what the policy keeps, and names them: never this month or the
-- one before, and none that is not rolled up. It waits two seconds for those who read or write, and leaves it then.
-- Who called is kept as long as the calls are, what was called for five years.
-- +goose StatementBegin
CREATE FUNCTION audit.expire_at(moment timestamptz) RETURNS SETOF text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  oldest timestamptz;
  name   text;
BEGIN
  PERFORM set_config('lock_timeout', '2s', true);
  SELECT moment - make_interval(days => days) INTO STRICT oldest FROM audit.policy;
  DELETE FROM audit.rollup_callers WHERE grain = 'day' AND start < oldest - '1 day'::interval;
  DELETE FROM audit.rollups WHERE grain = 'day' AND start < moment - '5 years'::interval;
  SELECT least(oldest, (date_trunc('month', moment AT TIME ZONE 'UTC') - '1 month'::interval) AT TIME ZONE 'UTC', until) INTO oldest
    FROM audit.watermarks WHERE grain = '5m';
  FOR name IN SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'audit.calls'::regclass AND c.relname ~ '^calls_[0-9]{4}_[0-9]{2}$' ORDER BY 1
  LOOP
    IF (to_date(substr(name, 7), 'YYYY_MM') + '1 month'::interval) AT TIME ZONE 'UTC' <= oldest THEN
      EXECUTE format('DROP TABLE audit.%I', name);
      RETURN NEXT name;
    END IF;
  END LOOP;
END
$$;
-- +goose StatementEnd

-- These two are all that the reader may do beside reading: neither lets it say when, or how much.
CREATE FUNCTION audit.roll_up() RETURNS boolean LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS 'SELECT audit.roll_up_at(pg_catalog.clock_timestamp())';
CREATE FUNCTION audit.expire() RETURNS SETOF text LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
  AS 'SELECT audit.expire_at(pg_catalog.clock_timestamp())';

REVOKE ALL ON FUNCTION audit.roll_up_log(timestamptz, timestamptz), audit.roll_up_finer(text, text, interval, timestamptz, timestamptz),
  audit.roll_up_at(timestamptz), audit.expire_at(timestamptz), audit.roll_up(), audit.expire() FROM PUBLIC;
GRANT USAGE ON SCHEMA audit TO hub_audit;
GRANT SELECT ON audit.calls, audit.measured, audit.rollups, audit.rollup_callers, audit.watermarks, audit.policy TO hub_audit;
GRANT EXECUTE ON FUNCTION audit.roll_up(), audit.expire() TO hub_audit;
