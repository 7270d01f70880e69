import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { DomainError } from '../../common/errors/domain-error.js';
import type { AgentServerTarget } from '../agent-servers/sandbox-address.js';
import { RunningSandboxQueries } from '../sandboxes/running-sandbox.queries.js';
import { SandboxActivityRepository } from '../sandboxes/sandbox-activity.repository.js';
import { isSameKey } from '../sandboxes/session-key.js';
import { type ProxiedRequest, refuseUpgrade, SandboxForwarder } from './sandbox-forwarder.js';

/** Credentials for the service, which clients may send out of habit and which programs in a sandbox must not see. */
const SERVICE_HEADERS = ['authorization', 'cookie', 'x-access-token'];

/** What programs in a sandbox must not tell a browser in the service's name. */
const FORBIDDEN_RESPONSE_HEADERS = [
  'set-cookie',
  'clear-site-data',
  'content-security-policy',
  'strict-transport-security',
];

const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];
const PREFIX = /^\/api\/v1\/sandboxes\/([0-9A-Za-z]{1,64})\/agent-server(?=[/?]|$)/;

/** An address under a sandbox's agent server. */
interface AgentServerPath {
  sandboxId: string;
  /** Path and query as the agent server gets them. */
  rest: string;
}

/**
 * Forwards requests and WebSockets under `/api/v1/sandboxes/{id}/agent-server` to the sandbox's agent server, which asks
 * for the sandbox's key itself.
 */
@Injectable()
export class AgentServerProxy implements BeforeApplicationShutdown {
  private readonly forwarder = new SandboxForwarder('The agent server of the sandbox did not answer.');

  constructor(
    private readonly running: RunningSandboxQueries,
    private readonly activity: SandboxActivityRepository,
  ) {}

  /** Middleware for plain requests; must precede anything that reads bodies. */
  middleware(): RequestHandler {
    // Express 5 passes a rejection on to the error handlers.
    return async (request: Request, response: Response, next: NextFunction) => {
      const path = agentServerPath(request.url);
      if (!path) {
        next();
        return;
      }
      await this.forward(request, response, path);
    };
  }

  /** Forwards a WebSocket; refuses it where there is no agent server. */
  async upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const path = agentServerPath(request.url ?? '');
    const sandbox = path && (await this.running.target(path.sandboxId));
    if (!path || !sandbox) {
      refuseUpgrade(socket, '404 Not Found');
      return;
    }
    await this.forwarder.forwardUpgrade(request, socket, head, proxyToAgentServer(request, sandbox, path));
  }

  beforeApplicationShutdown(): void {
    this.forwarder.closeSockets();
  }

  private async forward(request: Request, response: Response, path: AgentServerPath): Promise<void> {
    const { sandboxId } = path;
    const sandbox = await this.running.target(sandboxId);
    if (!sandbox) {
      throw new DomainError(
        'not_found',
        'sandbox_not_running',
        `No running sandbox has this id. If yours is paused, resume it: POST /api/v1/sandboxes/${sandboxId}/resume`,
      );
    }
    const { method } = request;
    response.once('finish', () => {
      // Reading does not keep a sandbox awake, nor does a client without its key.
      if (!SAFE_METHODS.includes(method) && response.statusCode < 400) {
        this.activity.touch(sandboxId);
      }
    });
    await this.forwarder.forwardRequest(request, response, proxyToAgentServer(request, sandbox, path));
  }
}

/** Parses the address of a request; null when it is not under an agent server. */
export function agentServerPath(address: string): AgentServerPath | null {
  const [prefix, sandboxId] = PREFIX.exec(address) ?? [];
  if (prefix === undefined || sandboxId === undefined) {
    return null;
  }
  const rest = address.slice(prefix.length);
  return { sandboxId, rest: rest.startsWith('/') ? rest : `/${rest}` };
}

function proxyToAgentServer(
  request: IncomingMessage,
  { address, sessionKey }: AgentServerTarget,
  { rest }: AgentServerPath,
): ProxiedRequest {
  return {
    target: address,
    path: rest,
    isProven: presentedKeys(request, rest).some((key) => isSameKey(key, sessionKey)),
    rewriteRequestHeaders: (headers) => remove(headers, SERVICE_HEADERS),
    rewriteResponseHeaders: (headers) => remove(headers, FORBIDDEN_RESPONSE_HEADERS),
  };
}

/** Where agent servers look for a key, besides the first frame of a WebSocket. */
function presentedKeys(request: IncomingMessage, rest: string): string[] {
  const header = request.headers['x-session-api-key'];
  const parameter = URL.parse(rest, 'http://sandbox')?.searchParams.get('session_api_key');
  return [header, parameter].filter((key): key is string => typeof key === 'string');
}

function remove(headers: OutgoingHttpHeaders, names: readonly string[]): void {
  for (const name of names) {
    delete headers[name];
  }
}
