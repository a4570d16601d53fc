-- +goose Up
-- How many targets reviewers have rejected for which reason, as review-control counts them.
ALTER TABLE authoring.drafts ADD COLUMN rejections jsonb NOT NULL DEFAULT '{}';
GRANT UPDATE (rejections) ON authoring.drafts TO hub_authoring;
