# shellcheck shell=bash
# The database of the tests: a private PostgreSQL cluster, a PgBouncer in front of it that gives each transaction
# another server, and a server that speaks S3. Sourced by ../../dev, whose `say`, `die`, `need` and `has` it uses.
#
# Nothing of it is shared with a server that this machine may run: own folder, own ports, a password of its own.

readonly POSTGRES_NEEDS=(/usr/share/postgresql-common/pg_wrapper=postgresql psql=postgresql-client pgbouncer=pgbouncer
	setpriv=util-linux python3=python3 pip3=python3-pip)

# The S3 server of the tests comes from PyPI.
readonly S3_SERVER='moto[server]==5.2.5'

# The names of what start_postgres exports.
readonly POSTGRES_VARIABLES=(COFFERDAM_TEST_POSTGRES COFFERDAM_TEST_PGBOUNCER COFFERDAM_TEST_POSTGRES_BIN
	COFFERDAM_TEST_S3)

postgres=          # the folder of the running server
postgres_pids=()   # PgBouncer, and the S3 server

# find_postgres FOLDER: the server for a test run: the one that the caller names, the one of `./dev postgres`, or one
# that is started now.
find_postgres() {
	local exports=${CARGO_TARGET_DIR:-target}/postgres/exports
	[[ -z ${COFFERDAM_TEST_POSTGRES:-} ]] || return 0
	if [[ -f $exports ]]; then
		# shellcheck source=/dev/null
		. "$exports"
		if psql -qAtc 'SELECT 1' "$COFFERDAM_TEST_POSTGRES" >/dev/null 2>&1; then return 0; fi
		unset "${POSTGRES_VARIABLES[@]}"
	fi
	if has apt-get || has pg_config; then
		need "${POSTGRES_NEEDS[@]}"
		mkdir -m 0755 "$1"
		start_postgres "$1" && return 0
	fi
	[[ -z ${CI:-} ]] || die "no PostgreSQL for the tests"
	say "not run: the tests that need PostgreSQL"
	unset "${POSTGRES_VARIABLES[@]}"
}

# start_postgres FOLDER: starts the servers, and names them to the tests. FOLDER is new, and short (a socket's path
# has 107 bytes).
start_postgres() {
	local bin port password
	postgres=$1
	bin=$(postgres_programs) || { say "the programs of PostgreSQL are not there"; return 1; }
	port=$(free_port)
	password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	mkdir -m 0700 "$postgres/cluster" "$postgres/socket"
	(umask 077 && printf '%s\n' "$password" >"$postgres/password")
	! is_root || chown -R postgres: "$postgres/cluster" "$postgres/socket" "$postgres/password"
	as_postgres "$bin/initdb" --pgdata "$postgres/cluster" --username cofferdam --pwfile "$postgres/password" \
		--auth-local trust --auth-host scram-sha-256 --encoding UTF8 --locale C --no-sync >"$postgres/initdb.log" 2>&1 ||
		{ tail -n 5 "$postgres/initdb.log" >&2; return 1; }
	# What a power cut would undo is of no interest here; what the death of the server undoes is.
	cat >>"$postgres/cluster/postgresql.conf" <<-EOT
		listen_addresses = '127.0.0.1'
		port = $port
		unix_socket_directories = '$postgres/socket'
		max_connections = 300
		fsync = off
		full_page_writes = off
	EOT
	as_postgres "$bin/pg_ctl" --pgdata "$postgres/cluster" --log "$postgres/cluster/log" --wait --silent start ||
		{ tail -n 5 "$postgres/cluster/log" >&2; return 1; }
	export COFFERDAM_TEST_POSTGRES_BIN=$bin
	export COFFERDAM_TEST_POSTGRES=postgres://cofferdam:$password@127.0.0.1:$port/postgres
	start_pgbouncer "$port" || return 1
	start_s3 || without_s3
}

# as_postgres COMMAND...: the server refuses to be root.
as_postgres() {
	if is_root; then
		(cd / && setpriv --reuid postgres --regid postgres --init-groups "$@")
	else
		"$@"
	fi
}

# postgres_programs: prints the folder of the newest server's programs, which are on nobody's path.
postgres_programs() {
	local found
	found=$(find /usr/lib/postgresql -path '*/bin/initdb' 2>/dev/null | sort -V | tail -n 1)
	[[ -n $found ]] || found=$(command -v initdb) || return 1
	dirname "$(readlink -f "$found")"
}

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# start_pgbouncer PORT: in front of the server at that port.
start_pgbouncer() {
	local port tries
	port=$(free_port)
	printf '"cofferdam" "%s"\n' "$(<"$postgres/password")" >"$postgres/cluster/users.txt"
	cat >"$postgres/cluster/pgbouncer.ini" <<-EOT
		[databases]
		* = host=$postgres/socket port=$1
		[pgbouncer]
		listen_addr = 127.0.0.1
		listen_port = $port
		unix_socket_dir =
		auth_type = scram-sha-256
		auth_file = $postgres/cluster/users.txt
		pool_mode = transaction
		default_pool_size = 4
		max_client_conn = 500
		server_idle_timeout = 5
		pidfile = $postgres/cluster/pgbouncer.pid
	EOT
	! is_root || chown postgres: "$postgres/cluster/users.txt" "$postgres/cluster/pgbouncer.ini"
	as_postgres setsid "$(command -v pgbouncer || echo /usr/sbin/pgbouncer)" --quiet "$postgres/cluster/pgbouncer.ini" \
		</dev/null >"$postgres/pgbouncer.log" 2>&1 &
	postgres_pids+=($!)
	COFFERDAM_TEST_PGBOUNCER=${COFFERDAM_TEST_POSTGRES%@*}@127.0.0.1:$port/postgres
	for ((tries = 0; tries < 100; tries++)); do
		if psql -qAtc 'SELECT 1' "$COFFERDAM_TEST_PGBOUNCER" >/dev/null 2>&1; then
			export COFFERDAM_TEST_PGBOUNCER
			return 0
		fi
		sleep 0.1
	done
	tail -n 5 "$postgres/pgbouncer.log" >&2
	return 1
}

# start_s3: a server that speaks S3, installed once per version into the target folder.
start_s3() {
	local all=${CARGO_TARGET_DIR:-target}/s3 folder port tries
	mkdir -p "$all"
	folder=$(cd "$all" && pwd)/$(printf '%s\n' "$S3_SERVER" "$(python3 --version)" | sha256sum | cut -c1-16)
	if [[ ! -d $folder ]]; then
		say "installing $S3_SERVER"
		rm -rf "$folder.partial"
		pip3 install --quiet --disable-pip-version-check --target "$folder.partial" "$S3_SERVER" >&2 || return 1
		mv -T "$folder.partial" "$folder"
	fi
	port=$(free_port)
	# It forgets everything when it ends, and needs no key: any will do.
	PYTHONPATH=$folder setsid python3 -m moto.server --host 127.0.0.1 --port "$port" \
		</dev/null >"$postgres/s3.log" 2>&1 &
	postgres_pids+=($!)
	for ((tries = 0; tries < 300; tries++)); do
		if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
			export COFFERDAM_TEST_S3=http://127.0.0.1:$port
			return 0
		fi
		sleep 0.1
	done
	tail -n 5 "$postgres/s3.log" >&2
	return 1
}

without_s3() {
	[[ -z ${CI:-} ]] || die "no S3 server for the tests"
	say "not run: the tests that need a server that speaks S3"
}

# stop_postgres: ends the servers. The folder is its caller's to remove.
stop_postgres() {
	local pid
	[[ -n $postgres ]] || return 0
	# It is a child of a shell that became another user.
	[[ ! -f $postgres/cluster/pgbouncer.pid ]] || kill "$(<"$postgres/cluster/pgbouncer.pid")" 2>/dev/null || true
	for pid in "${postgres_pids[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
	if [[ -f $postgres/cluster/postmaster.pid ]]; then
		as_postgres "$COFFERDAM_TEST_POSTGRES_BIN/pg_ctl" --pgdata "$postgres/cluster" --mode immediate --silent stop ||
			say "PostgreSQL in $postgres did not stop"
	fi
	postgres='' postgres_pids=()
}

# postgres_command [stop]: what `./dev postgres` does.
postgres_command() {
	local all=${CARGO_TARGET_DIR:-target}/postgres name
	mkdir -p "$all"
	all=$(cd "$all" && pwd)
	if [[ ${1:-} == stop ]]; then
		if [[ ! -f $all/dev.pid ]] || ! kill "$(<"$all/dev.pid")" 2>/dev/null; then die "no ./dev postgres runs here"; fi
		while [[ -f $all/dev.pid ]] && kill -0 "$(<"$all/dev.pid")" 2>/dev/null; do sleep 0.1; done
		return 0
	fi
	[[ $# -eq 0 ]] || die "type: ./dev postgres, or ./dev postgres stop"
	if [[ -f $all/dev.pid ]] && kill -0 "$(<"$all/dev.pid")" 2>/dev/null; then
		die "another ./dev postgres of this checkout runs; see $all/exports"
	fi
	need "${POSTGRES_NEEDS[@]}"
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/cofferdam-pg.XXXXXX")
	chmod 0755 "$scratch"
	trap 'clean_up; rm -f "'"$all"'/exports" "'"$all"'/dev.pid"' EXIT
	trap 'exit 130' INT TERM HUP
	mkdir -m 0755 "$scratch/pg"
	start_postgres "$scratch/pg" || die "PostgreSQL did not start"
	(umask 077 && : >"$all/exports")
	for name in "${POSTGRES_VARIABLES[@]}"; do
		[[ -z ${!name:-} ]] || printf 'export %s=%q\n' "$name" "${!name}"
	done | tee "$all/exports"
	echo $$ >"$all/dev.pid"
	say "PostgreSQL runs; stop it with Ctrl-C or ./dev postgres stop"
	# A signal interrupts `wait`, but would wait for a command to end.
	wait "${postgres_pids[0]}" || die "PgBouncer ended by itself: $(tail -n 5 "$scratch/pg/pgbouncer.log")"
}
