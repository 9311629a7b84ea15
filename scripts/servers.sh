#!/bin/sh
# Install the servers that tests connect to from the system's packages, unless they are installed.
# The tests start their own servers, on free ports and in temporary directories.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }
has_postgres() { has postgres || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; }

has_rabbitmq() { has rabbitmq-server || ls /usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server >/dev/null 2>&1; }
has_mosquitto() { has mosquitto || [ -x /usr/sbin/mosquitto ]; }
has_mariadb() { has mariadbd || [ -x /usr/sbin/mariadbd ]; }

missing=
has redis-server || missing="$missing redis-server"
has_postgres || missing="$missing postgresql"
has_rabbitmq || missing="$missing rabbitmq-server"
has_mosquitto || missing="$missing mosquitto"
has promtool || missing="$missing prometheus"
has_mariadb || missing="$missing mariadb-server"
if [ -z "$missing" ]; then
  exit 0
fi

if ! has apt-get; then
  printf '%s\n' "missing:$missing; install them with the package manager of this system, then run this script again" >&2
  exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
  as_root=sudo
fi
printf '%s\n' "installing$missing for the tests"
$as_root apt-get -o DPkg::Lock::Timeout=300 update
# Keep the package from starting a system-wide PostgreSQL server.
$as_root mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] ||
  printf '%s\n' "create_main_cluster = false" | $as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $as_root apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends $missing

# The packages enable services for the whole system; the tests need the programs alone.
if has systemctl; then
  for service in rabbitmq-server mosquitto prometheus mariadb; do
    case "$missing" in
      *" $service"*) $as_root systemctl disable --now "$service" >/dev/null 2>&1 || : ;;
    esac
  done
fi
