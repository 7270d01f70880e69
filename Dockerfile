# Any image with Node.js 24, npm and a shell; nothing else of it is used.
ARG BASE_IMAGE=node:24-bookworm-slim

FROM ${BASE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Optional are the embedded PostgreSQL and the Node.js that tests run on: an image gets DATABASE_URL.
RUN npm ci --omit=dev --omit=optional

# Starts from what has been downloaded already.
FROM dependencies AS build
RUN npm ci --omit=optional --prefer-offline
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
RUN npm run build

FROM ${BASE_IMAGE} AS production
ENV NODE_ENV=production HOST=0.0.0.0 DATA_DIR=/data
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
