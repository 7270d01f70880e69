#!/bin/sh
# Writes what docker-compose.yml requires to .env, and keeps what is there already.
set -eu
cd "$(dirname "$0")/.."
umask 077

random_hex() { head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
random_base64() { head -c 32 /dev/urandom | base64 | tr -d '\n'; }

add() {
  if grep -q "^$1=" .env 2>/dev/null; then
    echo "$1 is in .env already" >&2
  else
    echo "$1=$2" >>.env
    echo "$1 added to .env" >&2
  fi
}

# If the last line has no newline, the first added line must not be joined to it.
if [ -s .env ] && [ -n "$(tail -c 1 .env)" ]; then echo >>.env; fi
add POSTGRES_PASSWORD "$(random_hex)"
add ENCRYPTION_KEYS "k1:$(random_base64)"
add BOOTSTRAP_API_KEY "$(random_hex)"
# The group that may use the engine's socket.
socket=${DOCKER_SOCKET:-/var/run/docker.sock}
if [ -S "$socket" ]; then add DOCKER_GID "$(stat -L -c %g "$socket")"; fi
echo 'Then: docker compose up --detach --build; the service answers at http://127.0.0.1:3000 to the key in .env: KEY=$(sed -n s/^BOOTSTRAP_API_KEY=//p .env)' >&2
