import type { IncomingMessage } from 'node:http';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type {
  CorsOptions,
  CorsOptionsDelegate,
} from '@nestjs/common/interfaces/external/cors-options.interface.js';
import type { NextFunction, Request, Response } from 'express';
import helmet from 'helmet';
import { isLoopbackHost } from '@slipway/common/http/host-allowlist.js';
import { AllowedHosts, MISDIRECTED } from '@slipway/common/requests/allowed-hosts.js';
import { cutUnreadBodies } from '@slipway/common/requests/json-body.js';
import { AGENT_KEY, RequestAdmission } from './auth/request-admission.js';
import { RequestAuthenticator } from './auth/request-authenticator.js';
import { databaseProblem } from './common/errors/database-problems.js';
import { DomainError } from './common/errors/domain-error.js';
import { ProblemFilter } from '@slipway/api/errors/problem.filter.js';
import { serveDocumentPages } from './common/openapi/document-pages.js';
import { takeOffPathPrefix } from '@slipway/api/requests/path-prefix.js';
import { securityHeadersMiddleware } from '@slipway/api/requests/response-headers.js';
import { JsonBodyInterceptor } from '@slipway/api/requests/json-body.interceptor.js';
import { ServerConnections } from '@slipway/api/requests/server-connections.js';
import { answerUnreadableRequests } from '@slipway/api/requests/unreadable-requests.js';
import { requestContextMiddleware, requestLogMiddleware } from '@slipway/api/requests/request-context.js';
import { InputValidationPipe } from '@slipway/api/validation/validation.pipe.js';
import { AppConfig } from './config/app-config.js';
import { ServiceAddress } from './config/service-address.js';
import { Draining } from './health/readiness.js';
import { Metrics } from '@slipway/telemetry/metrics.js';
import { ProgramMetrics } from './observability/program-metrics.js';
import {
  requestMetricsMiddleware,
  requestSpansMiddleware,
} from './observability/request-spans.middleware.js';
import { AgentServerPorts } from './v1/sandbox-proxy/agent-server.ports.js';
import { AgentServerAddresses } from './v1/sandbox-proxy/agent-server.targets.js';
import { AgentServerProxy } from './v1/sandbox-proxy/agent-server.proxy.js';
import { SandboxPortProxy } from './v1/sandbox-proxy/sandbox-port.proxy.js';
import { WebSocketRouter } from './v1/sandbox-proxy/websocket.router.js';
import { OwnToolServer } from './v1/app-conversations/agent-request/own-tool-server.js';
import { EgressProxyKeys } from './v1/egress/egress-proxy.keys.js';
import { SandboxKeyQueries } from './v1/sandboxes/sandbox-key.guard.js';
import { SandboxCallback } from './v1/sandboxes/sandbox-callback.js';
import { SandboxUrls } from './v1/sandboxes/sandbox-urls.js';
import { builtConsoleFolder, consolePages } from './web/console.pages.js';
import { webAppMiddleware } from './web/web-app.middleware.js';

/** Disconnects a client that stalls in a body that the service does not read. */
const RECEIVE_TIMEOUT_MS = 20_000;
/** How long a connection may take to send its first byte, and a request to send all its headers. */
const HEAD_TIMEOUT_MS = 5_000;
/** Node.js would look every 30 s which of them are late. */
const CHECK_HEADS_MS = 1_000;
/** Uploads to agent servers are streamed, and may take long. */
const UPLOAD_TIMEOUT_MS = 3_600_000;
/** Longer than proxies keep idle connections (Google Cloud: 600 s), so that none sends a request just as we close. */
const KEEP_ALIVE_MS = 620_000;
const LOOPBACK = '127.0.0.1';
/** Headers that browser clients may read. */
const EXPOSED_HEADERS = ['ETag', 'Retry-After', 'X-Ignored-Members', 'X-Provider-Status', 'X-Request-Id'];

interface RequestHosts {
  accepts(request: IncomingMessage): boolean;
}

/** The order of middleware between socket and controllers, for the service and the tests. */
export function configureApp(app: NestExpressApplication, consoleFolder = builtConsoleFolder()): void {
  const { http, log, telemetry } = app.get(AppConfig);
  const [ports, agentServers] = [app.get(SandboxPortProxy), app.get(AgentServerProxy)];
  const addresses = app.get(AgentServerAddresses);
  const unroutedName = (request: IncomingMessage): string | null => {
    if (ports.isFor(request)) {
      return 'a port of a sandbox';
    }
    return addresses.find(request) === null ? null : '/api/v1/sandboxes/:id/agent-server';
  };
  const hosts = allowedHosts(app);
  const admission = requestAdmission(app);
  const programMetrics = app.get(ProgramMetrics);
  programMetrics.showRequestsUnderWay(() => admission.underWay);
  app.set('etag', false);
  app.set('x-powered-by', false);
  app.set('query parser', 'simple');
  app.set('trust proxy', http.trustedProxies);

  const connections = boundConnections(app);
  answerUnreadableRequests(app.getHttpServer());
  const { pathPrefix } = app.get(ServiceAddress);
  if (pathPrefix !== '') {
    const isForSandbox = (request: IncomingMessage): boolean =>
      ports.isFor(request) || addresses.find(request)?.isOwn === true;
    takeOffPathPrefix(app.getHttpServer(), pathPrefix, isForSandbox);
  }
  app.get(WebSocketRouter).attach(app.getHttpServer(), hosts);
  app.get(AgentServerPorts).handTo(app.getHttpServer());

  app.use((request: Request, response: Response, next: NextFunction) =>
    connections.inTurn(() => next())(request, response),
  );
  app.use(cutUnreadBodies(RECEIVE_TIMEOUT_MS));
  app.use(requestContextMiddleware);
  if (telemetry !== null) {
    app.use(requestSpansMiddleware(unroutedName));
  }
  if (telemetry !== null || http.metricsPort !== null) {
    app.use(requestMetricsMiddleware(app.get(Metrics), unroutedName));
  }
  if (log.requests) {
    app.use(requestLogMiddleware);
  }
  app.use((request: Request, _response: Response, next: NextFunction) =>
    next(hosts.accepts(request) ? undefined : new DomainError('misdirected_request', MISDIRECTED)),
  );
  // Ports of sandboxes are other sites to a browser: the service's headers do not apply.
  app.use((request: Request, response: Response, next: NextFunction) =>
    ports.isFor(request) ? next() : securityHeadersMiddleware(request, response, next),
  );
  app.enableCors(corsRules(app));
  app.use(async (request: Request, response: Response, next: NextFunction) => {
    const address = addresses.find(request);
    if (address !== null) {
      await agentServers.forward(request, response, address);
    } else if (ports.isFor(request)) {
      await ports.forward(request, response);
    } else {
      next();
    }
  });
  app.use(async (request: Request, response: Response, next: NextFunction) => {
    await admission.admit(request, response);
    next();
  });
  // Strict transport security belongs to the TLS terminator in front.
  app.use(
    '/docs',
    helmet({
      contentSecurityPolicy: { directives: { upgradeInsecureRequests: null } },
      strictTransportSecurity: false,
    }),
  );
  app.use(consolePages({ folder: consoleFolder, isAtRoot: http.webAppFolder === null, pathPrefix }));
  if (http.webAppFolder !== null) {
    const sources = app.get(SandboxUrls).browserSources();
    app.use(webAppMiddleware(http.webAppFolder, sources, isLoopbackHost(http.host)));
  }
  serveDocumentPages(app, http.publicUrl, pathPrefix);
  // Interceptors run after guards: a body is read once its caller is accepted.
  app.useGlobalInterceptors(new JsonBodyInterceptor());
  app.useGlobalPipes(new InputValidationPipe());
  app.useGlobalFilters(
    new ProblemFilter({
      onProblem: (code) => programMetrics.problemSent(code),
      passingFailure: databaseProblem,
    }),
  );
}

/** Bounds how long a connection may stall and what it may send ahead. */
function boundConnections(app: NestExpressApplication): ServerConnections {
  const server = app.getHttpServer();
  server.headersTimeout = HEAD_TIMEOUT_MS;
  Object.assign(server, { connectionsCheckingInterval: CHECK_HEADS_MS });
  server.requestTimeout = UPLOAD_TIMEOUT_MS;
  server.keepAliveTimeout = KEEP_ALIVE_MS;
  const connections = ServerConnections.attach(server);
  app.get(Draining).onBegin(() => connections.drain());
  return connections;
}

/** Does not count requests to programs in sandboxes, which the proxies count. */
function requestAdmission(app: NestExpressApplication): RequestAdmission {
  const { http } = app.get(AppConfig);
  const sandboxKeys = app.get(SandboxKeyQueries);
  const authenticator = app.get(RequestAuthenticator);
  const agents = app.get(OwnToolServer);
  const proxies = app.get(EgressProxyKeys);
  return new RequestAdmission({
    perMinute: http.rateLimitPerMinute,
    inFlight: http.maxRequestsInFlight,
    userOf: (key) => authenticator.userOf(key),
    isOurToken: (token) => authenticator.isOurToken(token),
    signedInUserOf: (request) => authenticator.signedInUser(request),
    isOfProxy: (key) => proxies.has(key),
    ownerOf: (key) => (key.startsWith(AGENT_KEY) ? agents.callerOf(key) : sandboxKeys.find(key)),
  });
}

/**
 * An agent server at a sandbox's port is another origin, so pages of the service may call it; it judges others
 * itself.
 */
function corsRules(app: NestExpressApplication): CorsOptionsDelegate<Request> {
  const { http } = app.get(AppConfig);
  const [addresses, address] = [app.get(AgentServerAddresses), app.get(ServiceAddress)];
  const ports = app.get(SandboxPortProxy);
  const rules: CorsOptions = { exposedHeaders: EXPOSED_HEADERS, maxAge: 600 };
  const none: CorsOptions = { origin: false };
  return (request, onRules) => {
    const { origin } = request.headers;
    if ((origin === undefined && http.corsOrigins.length === 0) || ports.isFor(request)) {
      onRules(null, none);
      return;
    }
    const isKnown = origin !== undefined && http.corsOrigins.includes(origin);
    if (addresses.find(request)?.isOwn === true) {
      onRules(null, {
        ...rules,
        origin: origin !== undefined && (isKnown || address.isOwn(origin)) && origin,
      });
    } else {
      onRules(null, { ...rules, origin: http.corsOrigins.length > 0 && http.corsOrigins });
    }
  };
}

function allowedHosts(app: NestExpressApplication): RequestHosts {
  const { http, sandboxes } = app.get(AppConfig);
  const [address, urls, callback] = [app.get(ServiceAddress), app.get(SandboxUrls), app.get(SandboxCallback)];
  const main = new AllowedHosts({
    listenHost: http.host,
    configured: http.allowedHosts,
    isOwn: (name) =>
      urls.isPortHost(name) ||
      [address.publicUrl, callback.webhooksUrl, sandboxes.portsUrl].some(
        (url) => url !== null && new URL(url).hostname === name,
      ),
  });
  const ports = app.get(AgentServerPorts);
  // They are on loopback, wherever the service itself listens.
  const atPorts = new AllowedHosts({ listenHost: LOOPBACK, configured: http.allowedHosts });
  return {
    accepts: (request) => (ports.sandboxOf(request) === null ? main : atPorts).accepts(request),
  };
}
