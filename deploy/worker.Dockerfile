# The image that agents run in: the three coding agents, and what they use besides. `cofferdam sandbox build-image`
# adds Cofferdam's own binary at the end, for machines that cannot mount theirs; others mount it when a container
# starts, and need it here no more than an image that another tool builds from this file.
#
# Any Debian or Ubuntu can be the base. A base that has Node and npm keeps them; another one gets Debian's Node,
# and no npm. What a build needs to reach its registries (certificates, mirrors) belongs into the base or into the
# proxy arguments that every engine knows. Nothing here needs BuildKit.
#
# One layer for each purpose: `build-image` tells their sizes apart by what made them (docker/layers.rs).
ARG BASE=node:22-bookworm-slim
FROM ${BASE} AS tools

# Whatever is below this is the base.
LABEL dev.cofferdam.image=worker

# Not ENV: what agents install later may ask.
ARG DEBIAN_FRONTEND=noninteractive

USER root

# The manuals are left out as Debian's slim images do it; the licences stay.
RUN set -eu; \
	printf '%s\n' 'path-exclude=/usr/share/man/*' 'path-exclude=/usr/share/locale/*' \
		'path-exclude=/usr/share/doc/*' 'path-include=/usr/share/doc/*/copyright' >/etc/dpkg/dpkg.cfg.d/worker-no-docs; \
	apt-get update; \
	apt-get install -y --no-install-recommends ca-certificates curl git openssh-client passwd ripgrep; \
	rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/aux-cache /var/log/apt /var/log/dpkg.log

RUN set -eu; \
	if ! command -v node >/dev/null; then \
		apt-get update; \
		apt-get install -y --no-install-recommends nodejs; \
		rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/ldconfig/aux-cache /var/log/apt /var/log/dpkg.log; \
	fi

# A stage of its own, so that npm and the copies that it brings leave nothing behind: Claude Code and OpenCode put the
# program of this machine in the place of their launcher, and OpenCode brings a second one for old processors; Codex
# brings a voice that nobody hears here.
FROM tools AS agents
LABEL dev.cofferdam.image=agents

RUN set -eu; \
	if ! command -v npm >/dev/null; then \
		apt-get update; \
		apt-get install -y --no-install-recommends npm; \
	fi

ARG CLAUDE_CODE=2.1.197
ARG CODEX=0.166.0
ARG OPENCODE=1.18.33

RUN set -eu; \
	npm install --global --prefix /usr/local --cache /tmp/npm --no-audit --no-fund --no-update-notifier --loglevel=error \
		--allow-scripts=@anthropic-ai/claude-code,opencode-ai \
		"@anthropic-ai/claude-code@$CLAUDE_CODE" "@openai/codex@$CODEX" "opencode-ai@$OPENCODE"; \
	cd /usr/local/lib/node_modules; \
	rm -rf /tmp/npm @anthropic-ai/claude-code/node_modules opencode-ai/node_modules \
		@openai/codex/node_modules/@openai/codex-*/vendor/*/codex-resources/voice; \
	mkdir /agents; \
	for agent in claude codex opencode; do mv "/usr/local/bin/$agent" /agents/; done

FROM tools

COPY --from=agents /usr/local/lib/node_modules/@anthropic-ai/claude-code /usr/local/lib/node_modules/@anthropic-ai/claude-code/
COPY --from=agents /usr/local/lib/node_modules/@openai/codex /usr/local/lib/node_modules/@openai/codex/
COPY --from=agents /usr/local/lib/node_modules/opencode-ai /usr/local/lib/node_modules/opencode-ai/
# They are links into the folders above.
COPY --from=agents /agents /usr/local/bin/

# An image whose agents do not start is no image.
RUN set -eu; \
	for agent in claude codex opencode; do HOME=/tmp/home "$agent" --version; done; \
	rm -rf /tmp/*

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
