import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { parse as parseQuery } from 'node:querystring';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { OpenConnections } from '../../auth/open-connections.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { SandboxKeyQueries } from '../sandboxes/sandbox-key.guard.js';
import { toWireStatus } from '../sandboxes/sandbox-status.js';
import { SandboxUrls } from '../sandboxes/sandbox-urls.js';
import { SandboxQueries } from '../sandboxes/sandbox.queries.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { isKeyOfHash } from '../sandboxes/session-key.js';
import {
  type AgentServerAddress,
  AgentServerAddresses,
  AgentServerTargets,
  type ConnectedSandbox,
  SandboxMovedError,
} from './agent-server.targets.js';
import {
  type ProxiedRequest,
  refuseUpgrade,
  SandboxForwarder,
} from '@slipway/reverse-proxy/sandbox-forwarder.js';
import { newForwarder } from './new-forwarder.js';

interface InnerRequest {
  host: string;
  method: string;
  path: string;
  headers: { 'X-Session-API-Key': string };
  body?: Record<string, unknown> | null;
}

/** Programs in a sandbox must not see the credentials for the service. */
const SERVICE_HEADERS = ['authorization', 'cookie', 'x-access-token'];

const FORBIDDEN_RESPONSE_HEADERS = [
  // These apply to the service's whole origin, some of them long after the response.
  'set-cookie',
  'clear-site-data',
  'strict-transport-security',
  'service-worker-allowed',
  'set-login',
  'alt-svc',
  'accept-ch',
  'origin-agent-cluster',
  'nel',
  'report-to',
  'reporting-endpoints',
  // It leads away from an address that users trust.
  'refresh',
  // The service sets its own.
  'content-security-policy',
  'content-security-policy-report-only',
  'cross-origin-resource-policy',
  'referrer-policy',
  'x-content-type-options',
  'x-frame-options',
];

/** Pages of sandboxes on the service's origin run nothing, send nothing, and have another origin. */
const SANDBOX_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox; form-action 'none'";

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/** Headers that a request in another one's body keeps. All others, such as the user's API key, are meant for the service. */
const KEPT_REQUEST_HEADERS = ['host', 'x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host'];
const KEPT_RESPONSE_HEADERS = ['content-length', 'content-encoding'];
const JSON_TYPE = 'application/json';
const ANY_TYPE = 'application/octet-stream';

/** `Retry-After` for a sandbox that is not running: a resume takes about a second. */
const RETRY_SECONDS = 2;

/** Refuses a wrong session key, which the agent server checks too. */
@Injectable()
export class AgentServerProxy implements BeforeApplicationShutdown {
  private readonly forwarder: SandboxForwarder;

  constructor(
    private readonly addresses: AgentServerAddresses,
    private readonly targets: AgentServerTargets,
    private readonly sandboxes: SandboxQueries,
    private readonly repository: SandboxRepository,
    private readonly keys: SandboxKeyQueries,
    private readonly urls: SandboxUrls,
    connections: OpenConnections,
  ) {
    this.forwarder = newForwarder('The agent server of the sandbox did not answer.', connections);
  }

  async upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const address = this.addresses.find(request);
    if (!address) {
      refuseUpgrade(socket, '404 Not Found');
      return;
    }
    const proxied = await this.authorize(request, address);
    await this.forwarder.forwardUpgrade(request, socket, head, proxied);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.forwarder.closeSockets();
  }

  /** Resolves when the response has been sent. Throws DomainError. */
  async forward(
    request: IncomingMessage,
    response: ServerResponse,
    address: AgentServerAddress,
  ): Promise<void> {
    const { sandboxId } = address;
    if (!address.isOwn) {
      // Set first, so that error responses have it too.
      response.setHeader('Content-Security-Policy', SANDBOX_POLICY);
    }
    const proxied = await this.authorize(request, address);
    this.touchWith(response, sandboxId, request.method);
    try {
      await this.forwarder.forwardRequest(request, response, proxied);
    } catch (error) {
      if (error instanceof DomainError && error.cause !== undefined) {
        this.targets.forget(sandboxId);
      }
      if (error instanceof DomainError && error.cause instanceof SandboxMovedError) {
        throw await this.notRunning(address);
      }
      throw error;
    }
  }

  /**
   * Forwards the request in the body of another request, but only to a sandbox of its sender. Resolves after the response.
   * @throws DomainError not_found without such a sandbox of this user; bad_gateway
   */
  async forwardInner(
    userId: string,
    { host, method, path, headers: sent, body = null }: InnerRequest,
    { request, response }: { request: IncomingMessage; response: ServerResponse },
  ): Promise<void> {
    const key = sent['X-Session-API-Key'];
    const { sandbox, connections } = await this.findOwn(userId, host, key);
    this.touchWith(response, sandbox.sandboxId, method);
    await this.forwarder.forwardRequest(request, response, {
      ownerId: sandbox.userId,
      target: sandbox.address,
      connections,
      path,
      isProven: true,
      inner: { method, body: body === null ? '' : JSON.stringify(body) },
      rewriteRequestHeaders: (headers) => {
        keep(headers, KEPT_REQUEST_HEADERS);
        headers['accept'] = '*/*';
        headers['x-session-api-key'] = key;
        if (body !== null) {
          headers['content-type'] = JSON_TYPE;
        }
      },
      rewriteResponseHeaders: (headers) => {
        const isJson = String(headers['content-type']).startsWith(JSON_TYPE);
        keep(headers, KEPT_RESPONSE_HEADERS);
        // Browsers must not render sandbox content as a page on the service's own origin.
        headers['content-type'] = isJson ? JSON_TYPE : ANY_TYPE;
      },
    });
  }

  private async findOwn(userId: string, host: string, key: string): Promise<ConnectedSandbox> {
    const holder = await this.keys.find(key);
    const found = holder?.userId === userId ? await this.targets.findAnew(holder.sandboxId) : null;
    if (found === null || !isKeyOfHash(key, found.keyHash)) {
      throw noSuchSandbox();
    }
    const { sandboxId } = found.sandbox;
    const exposed = await this.repository.findExposed(sandboxId);
    const url = this.urls.agentServer(sandboxId, exposed?.port ?? null);
    if (new URL(url).origin !== new URL(host).origin) {
      throw noSuchSandbox();
    }
    return found;
  }

  /** Neither reads nor refused requests keep a sandbox awake. */
  private touchWith(response: ServerResponse, sandboxId: string, method = ''): void {
    if (!SAFE_METHODS.includes(method)) {
      response.once('finish', () => {
        if (response.statusCode < 400) {
          this.repository.touch(sandboxId);
        }
      });
    }
  }

  /** @throws DomainError unauthorized for a wrong key; not_found or unavailable where no agent server runs */
  private async authorize(request: IncomingMessage, address: AgentServerAddress): Promise<ProxiedRequest> {
    const keys = presentedKeys(request, address.rest);
    const isRight = ({ keyHash, sandbox: { mayOwnerAct } }: ConnectedSandbox): boolean =>
      mayOwnerAct && keys.every((key) => isKeyOfHash(key, keyHash));
    const known = keys.length === 0 ? null : await this.targets.find(address.sandboxId);
    // The sandbox may have been resumed with a new key since.
    const found = known && isRight(known) ? known : await this.targets.findAnew(address.sandboxId);
    if (found === null) {
      throw await this.notRunning(address);
    }
    if (!isRight(found)) {
      throw new DomainError(
        'unauthorized',
        'This is not the key of the sandbox: send its session_api_key as X-Session-API-Key.',
      );
    }
    return {
      ownerId: found.sandbox.userId,
      target: found.sandbox.address,
      connections: found.connections,
      path: address.rest,
      isProven: keys.length > 0,
      rewriteRequestHeaders: (headers) => remove(headers, SERVICE_HEADERS),
      rewriteResponseHeaders: (headers) => remove(headers, FORBIDDEN_RESPONSE_HEADERS),
    };
  }

  /** At an address of its own, a sandbox that can be resumed is unavailable rather than not found. */
  private async notRunning({ sandboxId, isOwn }: AgentServerAddress): Promise<DomainError> {
    const { status } = isOwn ? await this.sandboxes.snapshot(sandboxId) : { status: null };
    if (status !== null && status !== 'DELETING') {
      return new DomainError(
        'sandbox_not_running',
        `The sandbox at this address is ${status === 'PAUSING' ? 'being paused' : toWireStatus(status, null)}. Unless it is STARTING, resume it: POST /api/v1/sandboxes/{id}/resume. The address stays the same, the session_api_key does not.`,
        { kind: 'unavailable', retryAfterSeconds: RETRY_SECONDS },
      );
    }
    return new DomainError(
      'sandbox_not_running',
      isOwn
        ? 'No sandbox has this address; the one that had it was removed.'
        : `No running sandbox has this id. If yours is paused, resume it: POST /api/v1/sandboxes/${sandboxId}/resume`,
    );
  }
}

/** Keys from all places where agent servers look for one, except a WebSocket's first frame. */
function presentedKeys(request: IncomingMessage, rest: string): string[] {
  const header = request.headers['x-session-api-key'];
  const query = rest.indexOf('?');
  const fields = parseQuery(query < 0 ? '' : rest.slice(query + 1), '&', '=', { maxKeys: 0 });
  const parameters = [fields['session_api_key'] ?? []].flat();
  return typeof header === 'string' ? [header, ...parameters] : parameters;
}

function remove(headers: OutgoingHttpHeaders, names: readonly string[]): void {
  for (const name of names) {
    delete headers[name];
  }
}

function keep(headers: OutgoingHttpHeaders, names: readonly string[]): void {
  remove(
    headers,
    Object.keys(headers).filter((name) => !names.includes(name)),
  );
}

export function noSuchSandbox(): DomainError {
  const detail =
    'No running sandbox of yours has this address and this key. If it is paused, resume it: POST /api/v1/sandboxes/{id}/resume; its key is another one afterwards.';
  return new DomainError('sandbox_not_running', detail);
}
