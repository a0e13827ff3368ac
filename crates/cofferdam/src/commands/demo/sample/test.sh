#!/bin/sh
# Fails as long as slug.sh writes underscores.
cd "$(dirname "$0")" || exit 2
. ./slug.sh
got=$(slug 'Hello World')
if [ "$got" = 'hello-world' ]; then
	echo "ok: $got"
else
	echo "not ok: expected hello-world, got $got"
	exit 1
fi
