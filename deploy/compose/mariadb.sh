#!/bin/sh
# Runs once, when the volume is new: the reader that the query service accepts, which may SELECT and no more.
set -eu
mariadb -uroot -p"$MARIADB_ROOT_PASSWORD" <<SQL
CREATE USER hub_ro@'%' IDENTIFIED BY '$HUB_DB_PASSWORD';
GRANT SELECT, SHOW VIEW ON marketplace.* TO hub_ro@'%';
SQL
