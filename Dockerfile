# Any image with Node.js 24, npm and a shell; the build uses nothing else of it.
ARG BASE_IMAGE=node:24-bookworm-slim

FROM ${BASE_IMAGE} AS packages
# On an older one the build succeeds, and what it builds fails at its first conversation.
RUN node -e 'const [major, minor] = process.versions.node.split(".").map(Number); \
  if (major < 22 || (major === 22 && minor < 19)) { \
    console.error(`The base image has Node.js ${process.versions.node}; Slipway needs 22.19 or newer`); \
    process.exit(1); \
  }'
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY packages/agent-client/package.json packages/agent-client/
COPY packages/agent-protocol/package.json packages/agent-protocol/
COPY packages/agent-server/package.json packages/agent-server/
COPY packages/api/package.json packages/api/
COPY packages/common/package.json packages/common/
COPY packages/configuration/package.json packages/configuration/
COPY packages/console/package.json packages/console/
COPY packages/database/package.json packages/database/
COPY packages/egress-proxy/package.json packages/egress-proxy/
COPY packages/egress-rules/package.json packages/egress-rules/
COPY packages/embedded-postgres/package.json packages/embedded-postgres/
COPY packages/git-providers/package.json packages/git-providers/
COPY packages/models/package.json packages/models/
COPY packages/reverse-proxy/package.json packages/reverse-proxy/
COPY packages/settings/package.json packages/settings/
COPY packages/sandboxes/package.json packages/sandboxes/
COPY packages/telemetry/package.json packages/telemetry/
COPY packages/tool-servers/package.json packages/tool-servers/
RUN npm ci

FROM packages AS build
COPY tsconfig.json openapi.json ./
COPY scripts scripts
COPY packages packages
COPY src src
RUN npm run build

# The image of sandboxes, built by npm run image:agent-server. Here the base image has to be Debian or Ubuntu.
FROM ${BASE_IMAGE} AS agent-server
# Further Debian packages for agents to work with.
ARG PACKAGES=
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends bash ca-certificates curl git $PACKAGES \
  && apt-get clean \
  && rm -rf /var/lib/apt/lists/*
# Tools run as the same user as the agent server. If a user may not read a program, they may not read the memory and the
# environment of its processes either. So the agent server has a Node.js of its own, besides the one that tools may use.
# Group 10002 may read it, to copy it into other images on Kubernetes.
RUN install -D -m 0751 -g 10002 "$(readlink -f "$(command -v node)")" /opt/slipway/bin/node \
  && useradd --uid 10001 --no-create-home --home-dir /sandbox/home --shell /bin/bash agent \
  && install -d -m 0700 -o 10001 -g 10001 /sandbox /sandbox/home
COPY --from=build /app/dist/bundle /opt/slipway
# The docker backend recognizes images with an agent server, and with a way to egress proxies, by these labels; images built
# from this one inherit them.
LABEL slipway.agent-server=1 slipway.relay=1
ENV HOME=/sandbox/home
WORKDIR /sandbox
USER 10001:10001
EXPOSE 8000
# The session key arrives on standard input, so no process has it in its environment or arguments.
ENTRYPOINT ["/opt/slipway/bin/node", "--max-semi-space-size=2", "--liftoff-only", "--v8-pool-size=1", "--expose-gc", "/opt/slipway/agent-server/main.js", "--host", "::", "--port", "8000", "--secrets-stdin"]

FROM ${BASE_IMAGE} AS production
LABEL org.opencontainers.image.title=Slipway org.opencontainers.image.version=0.2.0
# Nothing here would separate agents from the service, which has the keys of all users. So process sandboxes do not start.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data SANDBOX_ISOLATION=bwrap
WORKDIR /app
# The bundle needs no packages beside it; there is no embedded PostgreSQL in an image, which gets DATABASE_URL.
COPY package.json ./
COPY --from=build /app/dist/service dist/service
COPY --from=build /app/dist/bundle dist/bundle
COPY --from=build /app/dist/egress-proxy dist/egress-proxy
COPY --from=build /app/dist/swagger-ui dist/swagger-ui
COPY --from=build /app/dist/console dist/console
RUN chmod +x dist/service/slipway.js && ln -s /app/dist/service/slipway.js /usr/local/bin/slipway
RUN mkdir /data && chown 10001:10001 /data
USER 10001:10001
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/ready`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# The service handles SIGTERM itself, so it needs no init process.
CMD ["node", "--max-semi-space-size=4", "dist/service/slipway.js"]
