#!/bin/sh
# Runs once, when the volume is new: the reader that the query service accepts, which may SELECT and no more.
set -eu
: "${HUB_DB_PASSWORD:=$(cat "${HUB_DB_PASSWORD_FILE:-/dev/null}")}"
MYSQL_PWD="$MYSQL_ROOT_PASSWORD" mysql -uroot <<SQL
CREATE USER hub_ro@'%' IDENTIFIED BY '$HUB_DB_PASSWORD' WITH MAX_USER_CONNECTIONS ${HUB_SOURCE_CONNECTIONS:-330};
GRANT SELECT, SHOW VIEW ON marketplace.* TO hub_ro@'%';
SQL
