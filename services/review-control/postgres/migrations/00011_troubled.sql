-- +goose Up
-- What went wrong lately is counted without reading what went well.
CREATE INDEX reviews_troubled ON review_control.reviews (changed_at) WHERE failed + unknown > 0;
