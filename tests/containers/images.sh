# shellcheck shell=bash
# The images of the tests, made from packages of this machine's own distribution. Sourced by engine.sh.

readonly IMAGE_BASE=cofferdam-test/base:latest
readonly IMAGE_SMALL=cofferdam-test/small:latest
readonly IMAGE_WORKER=cofferdam-test/worker:latest

# What the tests run in the base image, besides a shell: the worker image is built from it.
readonly BASE_PACKAGES=ca-certificates,bash,python3-minimal,postgresql-client,redis-tools

# make_images ALL: makes the files of the images in ALL/<hash of the recipe>, and sets images_hash. Older ones go.
make_images() {
	local all=$1 partial
	images_hash=$(images_recipe | sha256sum | cut -c1-16)
	[[ ! -d $all/$images_hash ]] || return 0
	say "making the images of the tests"
	find "$all" -mindepth 1 -maxdepth 1 -type d -exec rm -rf {} +
	partial=$(mktemp -d "$all/partial.XXXXXX")
	chmod 0755 "$partial"
	if ! { make_base "$partial/base.tar" && make_small "$partial/small.tar"; } >"$all/make.log" 2>&1; then
		tail -n 20 "$all/make.log" >&2
		return 1
	fi
	# The files hold this machine's registry settings.
	chmod 0600 "$partial"/*.tar
	mv -T "$partial" "$all/$images_hash"
}

# images_recipe: everything that the images are made from, as text.
images_recipe() {
	declare -f make_base make_small busybox_package base_settings apt_sources
	printf '%s\n' "$BASE_PACKAGES" "$(uname -m)"
	# shellcheck disable=SC2046 # one file a word
	cat /etc/os-release "$(npm_settings)" /usr/local/share/ca-certificates/*.crt $(apt_sources) 2>/dev/null
	base_settings
}

# make_base FILE: a small Debian that reaches the registries as this machine does: same sources, same
# certificates, same settings of npm. They are here and not in the worker's Dockerfile.
make_base() {
	local file=$1 settings
	settings=$(mktemp -d)
	base_settings >"$settings/apt.conf"
	{ cat "$(npm_settings)" 2>/dev/null || true; echo cafile=/etc/ssl/certs/ca-certificates.crt; } >"$settings/.npmrc"
	# shellcheck disable=SC2016,SC2046 # mmdebstrap expands $1; one file a word
	mmdebstrap --variant=minbase --format=tar --include="$BASE_PACKAGES" --aptopt="$settings/apt.conf" \
		--dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
		--customize-hook='tar -C / -c --ignore-failed-read usr/local/share/ca-certificates 2>/dev/null | tar -C "$1" -x' \
		--customize-hook='chroot "$1" update-ca-certificates' \
		--customize-hook="upload $settings/.npmrc /root/.npmrc" --customize-hook='chmod 0600 "$1/root/.npmrc"' \
		"$(. /etc/os-release && printf '%s' "$VERSION_CODENAME")" "$file" $(apt_sources) || { rm -rf "$settings"; return 1; }
	rm -rf "$settings"
}

# apt_sources: the files that name the distribution's own archive, and nobody else's.
apt_sources() {
	local file
	for file in /etc/apt/sources.list /etc/apt/sources.list.d/{debian,ubuntu}.sources; do
		[[ ! -s $file ]] || printf '%s\n' "$file"
	done
}

# base_settings: how this machine's apt reaches its archive.
base_settings() { apt-config dump | grep -E '^Acquire::(https?::|Check-Valid-Until)' || true; }

npm_settings() { printf '%s' "${NPM_CONFIG_USERCONFIG:-${HOME:-/root}/.npmrc}"; }

# make_small FILE: nothing but busybox, for the tests that need no agent. Beware of its
# wget: it crashes, as its C library is static, and a test would take that for a wall. Its nc works.
make_small() {
	local file=$1 place root applet
	place=$(mktemp -d)
	root=$place/root
	if ! busybox_package "$place"; then
		rm -rf "$place"
		return 1
	fi
	mkdir -p "$root"/{bin,dev,etc,home,proc,sys,tmp,usr,workspace}
	chmod 1777 "$root/tmp"
	ln -s ../bin "$root/usr/bin"
	cp "$(find "$place/package" -path '*/bin/busybox' -type f)" "$root/bin/busybox"
	for applet in $("$root/bin/busybox" --list); do
		[[ $applet == busybox ]] || ln -s busybox "$root/bin/$applet"
	done
	echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
	echo 'root:x:0:' >"$root/etc/group"
	tar -C "$root" --owner=0 --group=0 --numeric-owner -cf "$file" .
	rm -rf "$place"
}

# busybox_package FOLDER: the static one, which need not be the one that is installed.
busybox_package() (
	cd "$1" || return 1
	apt-get download busybox-static || { apt-get update && apt-get download busybox-static; } || return 1
	dpkg-deb --extract busybox-static_*.deb package
)

# load_images: into both engines, if they do not have them from an earlier start. What earlier tests left goes.
load_images() {
	local name program image
	for program in docker podman; do
		"$engine/$program" ps -aq | xargs -r "$engine/$program" rm -f >/dev/null
		"$engine/$program" volume ls -q | xargs -r "$engine/$program" volume rm -f >/dev/null
		for name in base small; do
			image=cofferdam-test/$name:latest
			"$engine/$program" image inspect "$image" >/dev/null 2>&1 ||
				"$engine/$program" import --change 'CMD ["/bin/sh"]' "$engine_store/$name.tar" "$image" >/dev/null 2>&1 ||
				{ say "$program could not import $name.tar"; return 1; }
		done
	done
}

# build_worker: the worker image from the base, made by the command that people make theirs with, and a copy for
# podman. Unchanged steps come from the engine's cache.
build_worker() {
	local id home
	home=$(mktemp -d "$engine/home.XXXXXX")
	DOCKER_HOST=unix://$engine/docker.sock COFFERDAM_HOME=$home "$target_folder/debug/cofferdam" sandbox build-image \
		--base "$IMAGE_BASE" --network host --tag "$IMAGE_WORKER" >"$engine/build.log" 2>&1 ||
		{ tail -n 20 "$engine/build.log" >&2; return 1; }
	rm -rf "$home"
	# What the agents were installed in stays, or the next build would download them again.
	"$engine/docker" image prune --force --filter 'label!=dev.cofferdam.image=agents' >/dev/null
	id=$("$engine/docker" image inspect --format '{{.Id}}' "$IMAGE_WORKER")
	[[ $("$engine/podman" image inspect --format 'sha256:{{.Id}}' "$IMAGE_WORKER" 2>/dev/null) != "$id" ]] || return 0
	"$engine/docker" save "$IMAGE_WORKER" | "$engine/podman" load --quiet >/dev/null || return 1
	"$engine/podman" image prune --force >/dev/null
}
