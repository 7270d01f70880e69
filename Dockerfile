# Any image with Node.js 24, npm and a shell; nothing else of it is used.
ARG BASE_IMAGE=node:24-bookworm-slim

FROM ${BASE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci

# Optional are the embedded PostgreSQL and the Node.js that tests run on: an image gets DATABASE_URL.
FROM packages AS dependencies
RUN npm prune --omit=dev --omit=optional

FROM packages AS build
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
RUN npm run build

# Sandboxes of the docker backend: npm run image:agent-server. Here the base image has to be a Debian or an Ubuntu.
FROM ${BASE_IMAGE} AS agent-server
# What agents work with, beyond bash and git.
ARG PACKAGES=
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends bash ca-certificates curl git $PACKAGES \
  && apt-get clean \
  && rm -rf /var/lib/apt/lists/*
# Tools run as the same user as the agent server. A program that its user may not read makes processes whose memory and
# environment that user may not read either; hence a Node.js of its own, beside the one that tools may use. Group 10002
# reads it, to copy it into other images on Kubernetes.
RUN install -D -m 0751 -g 10002 "$(readlink -f "$(command -v node)")" /opt/slipway/bin/node \
  && useradd --uid 10001 --no-create-home --home-dir /sandbox/home --shell /bin/bash agent \
  && install -d -m 0700 -o 10001 -g 10001 /sandbox /sandbox/home
COPY --from=build /app/dist/bundle /opt/slipway
# The docker backend takes an image for an agent server's by this label; images made from this one inherit it.
LABEL slipway.agent-server=1
ENV HOME=/sandbox/home
WORKDIR /sandbox
USER 10001:10001
EXPOSE 8000
# The session key comes on standard input, so no process has it in its environment or arguments.
ENTRYPOINT ["/opt/slipway/bin/node", "--max-semi-space-size=2", "/opt/slipway/agent-server/main.js", "--host", "0.0.0.0", "--port", "8000", "--secrets-stdin"]

FROM ${BASE_IMAGE} AS production
# With nothing to separate agents from the service, which has everybody's keys, sandboxes as processes do not start here.
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data SANDBOX_ISOLATION=bwrap
WORKDIR /app
COPY --from=dependencies /app/node_modules node_modules
COPY package.json ./
COPY scripts scripts
COPY --from=build /app/dist dist
RUN mkdir /data && chown 10001:10001 /data
USER 10001:10001
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/ready`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
# Ends by itself on SIGTERM, so it needs no init in front.
CMD ["node", "--max-semi-space-size=4", "scripts/start.mjs"]
