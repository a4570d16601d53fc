-- +goose Up
-- Groups of the menu and their items, as agents make them and administrators put them in order.
CREATE TABLE admin.menu_groups (
  id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  slug             text        NOT NULL CONSTRAINT menu_groups_slug UNIQUE,
  name             text        NOT NULL,
  icon             text,
  position         bigint      NOT NULL CHECK (position >= 0),
  hidden           boolean     NOT NULL DEFAULT false,
  created_at       timestamptz NOT NULL,
  service          text        NOT NULL,
  external_user_id text        NOT NULL,
  credential_id    text        NOT NULL,
  hub_user         text        NOT NULL
);

CREATE TABLE admin.menu_items (
  id               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  group_id         bigint      NOT NULL CONSTRAINT menu_items_group REFERENCES admin.menu_groups (id),
  slug             text        NOT NULL,
  name             text        NOT NULL,
  icon             text,
  href             text, -- NULL is the item's own page
  position         bigint      NOT NULL CHECK (position >= 0),
  hidden           boolean     NOT NULL DEFAULT false,
  created_at       timestamptz NOT NULL,
  service          text        NOT NULL,
  external_user_id text        NOT NULL,
  credential_id    text        NOT NULL,
  hub_user         text        NOT NULL,
  CONSTRAINT menu_items_slug UNIQUE (group_id, slug)
);

-- The versions of an item's page; the newest is the page. They are never changed and never deleted: the grants say so.
-- sections is json and not jsonb: numbers and members stay as they were sent.
CREATE TABLE admin.page_versions (
  item_id          bigint      NOT NULL CONSTRAINT page_versions_item REFERENCES admin.menu_items (id),
  version          integer     NOT NULL CHECK (version > 0),
  title            text        NOT NULL,
  description      text,
  sections         json        NOT NULL,
  bytes            integer     NOT NULL,
  created_by       text,
  restored_from    integer,
  created_at       timestamptz NOT NULL,
  service          text        NOT NULL,
  external_user_id text        NOT NULL,
  credential_id    text        NOT NULL,
  hub_user         text        NOT NULL,
  PRIMARY KEY (item_id, version)
);

GRANT USAGE ON SCHEMA admin TO hub_admin;
GRANT SELECT, INSERT, DELETE ON admin.menu_groups, admin.menu_items TO hub_admin;
GRANT UPDATE (name, icon, position, hidden) ON admin.menu_groups, admin.menu_items TO hub_admin;
GRANT SELECT, INSERT ON admin.page_versions TO hub_admin;
