#!/bin/sh
# Writes the secrets that docker-compose.yml requires to .env; keeps those that are there already.
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
