-- +goose Up
-- What a service's role writes is read a page at a time by whoever looks at the log, and nobody can delete it: a row is
-- no larger than this package makes any. Rows from before this are as they are.
ALTER TABLE audit.calls ADD CONSTRAINT calls_bounded CHECK (
  octet_length(request_id) <= 300 AND octet_length(service) <= 300 AND octet_length(external_user_id) <= 300 AND
  octet_length(credential_id) <= 300 AND octet_length(tool) <= 300 AND octet_length(outcome) <= 100 AND octet_length(trace_id) <= 300 AND
  octet_length(input_hash) <= 64 AND octet_length(detail::text) <= 1048576) NOT VALID;

-- A row that counts refusals makes a row of the roll-ups of each code that it names, a hundred at most. All else is as it was.
CREATE OR REPLACE VIEW audit.measured AS
  SELECT at, tool, outcome, credential_id, 1::bigint AS calls,
    (CASE WHEN outcome IN ('ok', 'E_DB', 'E_DB_TIMEOUT', 'E_INTERNAL') AND strpos(tool, '.') = 0 THEN
      width_bucket(took_ms, ARRAY[0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000, 1500, 2000, 3000, 5000,
        7000, 10000, 15000, 20000, 30000, 60000]) ELSE 0 END)::smallint AS bucket
  FROM audit.calls WHERE tool NOT IN ('calls.refused', 'session.refused')
  UNION ALL
  SELECT c.at, c.tool, o.key, c.credential_id, CASE WHEN o.value ~ '^[0-9]{1,9}$' THEN o.value::bigint ELSE 0 END, 0::smallint
  FROM audit.calls c CROSS JOIN LATERAL (SELECT key, value FROM jsonb_each_text(
    CASE WHEN jsonb_typeof(c.detail -> 'outcomes') = 'object' THEN c.detail -> 'outcomes' ELSE '{}' END)
    WHERE key ~ '^[A-Z_]{1,40}$' LIMIT 100) o
  WHERE c.tool IN ('calls.refused', 'session.refused');
