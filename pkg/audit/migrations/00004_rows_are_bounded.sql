-- +goose Up
-- What a service's role writes is read a page at a time by whoever looks at the log, and nobody can delete it: a row is
-- no larger than this package makes any. Rows from before this are as they are.
ALTER TABLE audit.calls ADD CONSTRAINT calls_bounded CHECK (
  octet_length(request_id) <= 300 AND octet_length(service) <= 300 AND octet_length(external_user_id) <= 300 AND
  octet_length(credential_id) <= 300 AND octet_length(tool) <= 300 AND octet_length(outcome) <= 100 AND octet_length(trace_id) <= 300 AND
  octet_length(input_hash) <= 64 AND octet_length(detail::text) <= 1048576) NOT VALID;
