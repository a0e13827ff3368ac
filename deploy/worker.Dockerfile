# The image that agents run in: the three coding agents, and what they use besides. Cofferdam's own binary is not
# in it; it is mounted when a container starts.
#
# Any Debian or Ubuntu can be the base. A base that has Node and npm keeps them; another one gets Debian's Node,
# and no npm. What a build needs to reach its registries (certificates, mirrors) belongs into the base or into the
# proxy arguments that every engine knows. Nothing here needs BuildKit.
ARG BASE=node:22-bookworm-slim
FROM ${BASE}

ARG CLAUDE_CODE=2.1.197
ARG CODEX=0.166.0
ARG OPENCODE=1.18.33

# Not ENV: what agents install later may ask.
ARG DEBIAN_FRONTEND=noninteractive

USER root

# The manuals are left out as Debian's slim images do it; the licences stay.
RUN set -eu; \
	printf '%s\n' 'path-exclude=/usr/share/man/*' 'path-exclude=/usr/share/locale/*' \
		'path-exclude=/usr/share/doc/*' 'path-include=/usr/share/doc/*/copyright' >/etc/dpkg/dpkg.cfg.d/worker-no-docs; \
	apt-get update; \
	apt-get install -y --no-install-recommends \
		ca-certificates curl git openssh-client passwd ripgrep $(command -v node >/dev/null || echo nodejs); \
	rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/aux-cache /var/log/apt /var/log/dpkg.log

# One layer, so that npm's packages and the copies that npm brings leave nothing behind: Claude Code and OpenCode
# put the program of this machine in the place of their launcher, and OpenCode brings a second one for old
# processors; Codex brings a voice that nobody hears here. An image whose agents do not start is no image.
RUN set -eu; \
	installed() { dpkg-query --show --showformat '${Package}\n' | sort; }; \
	installed >/tmp/before; \
	if ! command -v npm >/dev/null; then apt-get update; apt-get install -y --no-install-recommends npm; fi; \
	npm install --global --prefix /usr/local --cache /tmp/npm --no-audit --no-fund --no-update-notifier \
		--loglevel=error --allow-scripts=@anthropic-ai/claude-code,opencode-ai \
		"@anthropic-ai/claude-code@$CLAUDE_CODE" "@openai/codex@$CODEX" "opencode-ai@$OPENCODE"; \
	borrowed=$(installed | comm -13 /tmp/before -); \
	if [ -n "$borrowed" ]; then apt-get purge -y $borrowed; fi; \
	cd /usr/local/lib/node_modules; \
	rm -rf @anthropic-ai/claude-code/node_modules opencode-ai/node_modules \
		@openai/codex/node_modules/@openai/codex-*/vendor/*/codex-resources/voice; \
	for agent in claude codex opencode; do HOME=/tmp/home "$agent" --version; done; \
	rm -rf /tmp/* /root/.npm /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/aux-cache \
		/var/log/apt /var/log/dpkg.log

# Some bases have somebody with this number already (Node's: `node`).
RUN set -eu; \
	there=$(getent passwd 1000 | cut -d: -f1); \
	if [ -n "$there" ]; then userdel --remove "$there"; fi; \
	there=$(getent group 1000 | cut -d: -f1); \
	if [ -n "$there" ]; then groupdel "$there"; fi; \
	groupadd --gid 1000 worker; \
	useradd --uid 1000 --gid 1000 --no-log-init --create-home --home-dir /home/worker --shell /bin/bash worker; \
	install -d -o worker -g worker /workspace

USER worker
WORKDIR /workspace
