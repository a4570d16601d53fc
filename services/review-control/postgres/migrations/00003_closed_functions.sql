-- +goose Up
-- What a trigger does is not to depend on the search_path of whoever makes it fire.
ALTER FUNCTION review_control.keep_review() SET search_path = pg_catalog, pg_temp;
REVOKE ALL ON FUNCTION review_control.keep_review() FROM PUBLIC;
