# shellcheck shell=bash
# The container engine of the tests: a private dockerd and a private podman, with images made from Debian's
# packages, since none can be pulled. Sourced by ../../dev, whose `say`, `has` and `need` it uses.
#
# Nothing of it is shared with an engine that this machine may run: own folders, own socket, own bridge, own
# firewall rules (those that dockerd would write are the same for every dockerd, and it empties them when it
# starts). What is slow to make is kept in the target folder: STORE/<hash of the recipe>.

# shellcheck source=tests/containers/images.sh
. tests/containers/images.sh
# shellcheck source=tests/containers/network.sh
. tests/containers/network.sh

readonly ENGINE_NEEDS=(dockerd=docker.io containerd=containerd runc=runc docker=docker.io podman=podman
	/usr/lib/cni/bridge=containernetworking-plugins mmdebstrap=mmdebstrap dpkg-deb=dpkg iptables=iptables ip=iproute2
	flock=util-linux psql=postgresql-client pg_ctlcluster=postgresql redis-server=redis-server redis-cli=redis-tools)

engine=         # the folder of the running engine: sockets, logs, wrappers
engine_store=   # what is kept: the images' files and both engines' data
engine_pid=
engine_all=     # the folder of all that is kept, the lock, and what is written down for another ./dev

# start_engine FOLDER: starts both engines with their images, and names them to the tests. FOLDER is new, short
# (a socket's path has 107 bytes) and open to the ordinary user. Fails where this machine has no engine to give.
start_engine() {
	local all=${CARGO_TARGET_DIR:-target}/containers
	mkdir -p "$all"
	all=$(cd "$all" && pwd)
	exec {engine_lock}>"$all/lock"
	flock -n "$engine_lock" || { say "another ./dev of this checkout runs an engine; see $all/exports"; return 1; }
	engine_all=$all
	end_earlier_engine "$all"
	make_images "$all" || return 1
	engine=$1
	engine_store=$all/$images_hash
	printf '%s\n' "$engine" >"$all/folder"
	raise_network || return 1
	start_dockerd || return 1
	write_wrappers
	load_images || return 1
	export COFFERDAM_TEST_DOCKER=unix://$engine/docker.sock
	export COFFERDAM_TEST_DOCKER_COMMAND=$engine/docker
	export COFFERDAM_TEST_PODMAN=$engine/podman
	export COFFERDAM_TEST_IMAGE_BASE=$IMAGE_BASE COFFERDAM_TEST_IMAGE_SMALL=$IMAGE_SMALL
	export COFFERDAM_TEST_IMAGE_WORKER=$IMAGE_WORKER
}

# The names of what start_engine exports.
readonly ENGINE_VARIABLES=(COFFERDAM_TEST_DOCKER COFFERDAM_TEST_DOCKER_COMMAND COFFERDAM_TEST_PODMAN
	COFFERDAM_TEST_IMAGE_BASE COFFERDAM_TEST_IMAGE_SMALL COFFERDAM_TEST_IMAGE_WORKER)

# find_engine FOLDER: the engine for a test run: the one that the caller names, the one of `./dev engine`, or one
# that is started now.
find_engine() {
	local exports=${CARGO_TARGET_DIR:-target}/containers/exports
	[[ -z ${COFFERDAM_TEST_DOCKER:-} ]] || return 0
	if [[ -f $exports ]]; then
		# shellcheck source=/dev/null
		. "$exports"
		"$COFFERDAM_TEST_DOCKER_COMMAND" version >/dev/null 2>&1 && return 0
		unset "${ENGINE_VARIABLES[@]}"
	fi
	if is_root && has apt-get; then
		need "${ENGINE_NEEDS[@]}"
		mkdir -m 0755 "$1"
		start_engine "$1" && return 0
	fi
	without_engine "it takes root, on Debian or Ubuntu, to start one"
}

# find_worker_image: builds it in an engine that was started for this run.
find_worker_image() {
	[[ -z $engine || -z ${COFFERDAM_TEST_DOCKER:-} ]] || build_worker || without_engine "the worker image was not built"
}

# without_engine WHY: goes on without, but not in CI.
without_engine() {
	[[ -z ${CI:-} ]] || die "no container engine for the tests: $1"
	say "not run: the tests that need a container engine; $1"
	unset "${ENGINE_VARIABLES[@]}"
}

# share_engine USER: lets the ordinary user reach our engine; nobody else on this machine gets that door to root.
# Its podman is root's: an ordinary user's holds no limits where control groups are of version 1.
share_engine() {
	local socket=${COFFERDAM_TEST_DOCKER:-}
	[[ -n $socket ]] || return 0
	socket=${socket#unix://}
	if [[ -f ${socket%/*}/dockerd.pid && -f ${socket%/*}/network ]]; then
		chgrp "$1" "$socket"
		chmod 0660 "$socket"
	fi
	"${AS_USER[@]}" "$COFFERDAM_TEST_DOCKER_COMMAND" version >/dev/null 2>&1 || without_engine "$1 cannot reach $socket"
}

# stop_engine: ends the engine and what runs in it, and takes away every trace but the store. Says no if
# something is still mounted in its folder, which must then not be removed.
stop_engine() {
	[[ -n $engine ]] || return 0
	if [[ -n $engine_pid ]] && kill -0 "$engine_pid" 2>/dev/null; then
		"$engine/docker" ps -q 2>/dev/null | xargs -r "$engine/docker" kill >/dev/null 2>&1 || true
	fi
	[[ ! -x $engine/podman ]] || "$engine/podman" rm --all --force --time 0 >/dev/null 2>&1 || true
	[[ -z $engine_pid ]] || end_process "$engine_pid"
	end_rest "$engine"
	lower_network
	if ! unmount_below "$engine" || ! unmount_below "$engine_store"; then
		say "$engine could not be unmounted"
		return 1
	fi
	rm -rf "$engine" "${engine_store%/*}/folder"
	# What a ./dev that was killed had around it.
	rmdir "${engine%/*}" 2>/dev/null || true
	engine='' engine_pid=''
}

# engine_command [stop]: what `./dev engine` does.
engine_command() {
	local all=${CARGO_TARGET_DIR:-target}/containers name
	if [[ ${1:-} == stop ]]; then
		if [[ ! -f $all/dev.pid ]] || ! kill "$(<"$all/dev.pid")" 2>/dev/null; then die "no ./dev engine runs here"; fi
		while [[ -f $all/dev.pid ]] && kill -0 "$(<"$all/dev.pid")" 2>/dev/null; do sleep 0.1; done
		return 0
	fi
	[[ $# -eq 0 ]] || die "type: ./dev engine, or ./dev engine stop"
	is_root || die "the engine needs root; type: sudo ./dev engine"
	need "${BUILD_NEEDS[@]}" "${ENGINE_NEEDS[@]}"
	need_rust
	build_binary
	scratch=$(mktemp -d "${TMPDIR:-/tmp}/cofferdam-engine.XXXXXX")
	chmod 0755 "$scratch"
	trap 'clean_up; rm -f "$engine_all/exports" "$engine_all/dev.pid"' EXIT
	trap 'exit 130' INT TERM HUP
	mkdir -m 0755 "$scratch/run"
	start_engine "$scratch/run" || die "the engine did not start"
	build_worker || die "the worker image was not built"
	for name in "${ENGINE_VARIABLES[@]}"; do
		printf 'export %s=%q\n' "$name" "${!name}"
	done | tee "$all/exports"
	echo $$ >"$all/dev.pid"
	say "the engine runs; stop it with Ctrl-C or ./dev engine stop"
	# A signal interrupts `wait`, but would wait for a command to end.
	wait "$engine_pid" || die "the engine ended by itself; see its log: $(tail -n 5 "$engine/dockerd.log")"
}

# end_earlier_engine ALL: stops the engine of a ./dev that was killed before it could. The lock says that its
# ./dev is gone.
end_earlier_engine() {
	local all=$1
	[[ -f $all/folder ]] || return 0
	engine=$(<"$all/folder")
	engine_store=$all/none
	engine_pid=
	if [[ -d $engine ]]; then
		say "ending what an earlier engine left in $engine"
		[[ ! -f $engine/dockerd.pid ]] || ! is_ours "$(<"$engine/dockerd.pid")" || engine_pid=$(<"$engine/dockerd.pid")
	fi
	unmount_below "$all"
	stop_engine
}

# is_ours PID: whether this is the dockerd of our folder, and not a process that got its number later.
is_ours() { tr '\0' '\n' 2>/dev/null <"/proc/$1/cmdline" | grep -qxF "$engine/dockerd.pid"; }

# start_dockerd: containerd is its child. An engine whose kept data is damaged starts without it.
start_dockerd() {
	run_dockerd && return 0
	say "the engine did not start with what was kept; starting it empty: $(tail -n 1 "$engine/dockerd.log")"
	[[ -z $engine_pid ]] || end_process "$engine_pid"
	end_rest "$engine"
	unmount_below "$engine_store" || return 1
	rm -rf "$engine_store/docker"
	run_dockerd && return 0
	tail -n 20 "$engine/dockerd.log" >&2
	return 1
}

run_dockerd() {
	# Not the machine's own settings, nor its key.
	printf '{"deprecated-key-path": "%s/key.json"}\n' "$engine" >"$engine/daemon.json"
	# A session of its own, so that Ctrl-C ends it in our order; not our lock, which says that this ./dev lives.
	setsid dockerd --config-file "$engine/daemon.json" --pidfile "$engine/dockerd.pid" \
		--host "unix://$engine/docker.sock" --data-root "$engine_store/docker" --exec-root "$engine/exec" \
		--bridge "$bridge" --iptables=false --ip6tables=false --ip-masq=false --ip-forward=false \
		</dev/null >"$engine/dockerd.log" 2>&1 {engine_lock}>&- &
	engine_pid=$!
	write_docker_wrapper
	local tries
	for ((tries = 0; tries < 300; tries++)); do
		kill -0 "$engine_pid" 2>/dev/null || return 1
		if "$engine/docker" version >/dev/null 2>&1; then return 0; fi
		sleep 0.1
	done
	return 1
}

# The wrappers are what a test gives as a runtime command: they know where the engine is, and keep the caller's
# own configuration and logins out.
write_docker_wrapper() {
	mkdir -p "$engine/docker-config"
	cat >"$engine/docker" <<-EOT
		#!/bin/sh
		export DOCKER_CONFIG=$engine/docker-config DOCKER_BUILDKIT=0
		exec $(command -v docker) --host unix://$engine/docker.sock "\$@"
	EOT
	chmod 0755 "$engine/docker"
}

# The folder that podman runs in must be short: it refuses one of more than 50 characters.
# Locks in files: those in shared memory belong to every podman of the machine. The limits are low: podman's own
# are higher than some roots may set. And runc: crun refuses machines with both versions of control groups.
write_wrappers() {
	mkdir -p "$engine/p" "$engine/cni" "$engine_store/podman"
	# Its images are kept, its containers are not; and its database works with the folders of one run only.
	rm -rf "$engine_store"/podman/{libpod,overlay-containers,volumes}
	cat >"$engine/containers.conf" <<-EOT
		[containers]
		log_driver = "k8s-file"
		default_ulimits = ["nofile=$(ulimit -Hn):$(ulimit -Hn)", "nproc=4096:4096"]
		[engine]
		runtime = "runc"
		cgroup_manager = "cgroupfs"
		events_logger = "file"
		lock_type = "file"
		tmp_dir = "$engine/p/libpod"
		[network]
		network_backend = "cni"
		network_config_dir = "$engine/cni"
		default_network = "podman"
	EOT
	write_podman_network
	cat >"$engine/podman" <<-EOT
		#!/bin/sh
		HOME=\${HOME:-/root} CONTAINERS_CONF=$engine/containers.conf exec $(command -v podman) \\
			--root $engine_store/podman --runroot $engine/p --storage-driver overlay "\$@"
	EOT
	chmod 0755 "$engine/podman"
}

# end_process PID: asks, and insists after 20 seconds.
end_process() {
	local tries
	kill "$1" 2>/dev/null || return 0
	for ((tries = 0; tries < 200; tries++)); do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	kill -KILL "$1" 2>/dev/null || true
}

# end_rest FOLDER: ends what outlives an engine that was killed: the shims, which name its folder, with the
# containers that they hold.
end_rest() {
	local place
	for place in /proc/[0-9]*; do
		if [[ $(readlink "$place/exe" 2>/dev/null) =~ /(containerd|containerd-shim[^/]*|conmon)$ ]] &&
			tr '\0' '\n' 2>/dev/null <"$place/cmdline" | grep -qF "$1/"; then
			# shellcheck disable=SC2046 # one number a word
			kill -KILL $(ps -o pid= --ppid "${place#/proc/}") "${place#/proc/}" 2>/dev/null || true
		fi
	done
}

# unmount_below FOLDER: the last mounted first.
unmount_below() {
	local place
	while read -r place; do
		umount "$place" 2>/dev/null || umount --lazy "$place" || return 1
	done < <(awk -v folder="$1/" 'index($5, folder) == 1 { print $5 }' /proc/self/mountinfo | tac)
}
