#!/bin/sh
# Turns a title into a slug: `Hello World` becomes `hello-world`.
slug() {
	printf '%s' "$1" | tr 'A-Z ' 'a-z_'
}
