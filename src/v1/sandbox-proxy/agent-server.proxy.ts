import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { DomainError } from '../../common/errors/domain-error.js';
import { SandboxActivityRepository } from '../sandboxes/sandbox-activity.repository.js';
import { RunningSandboxQueries } from '../sandboxes/sandbox.queries.js';
import { type ProxiedRequest, refuseUpgrade, SandboxForwarder } from './sandbox-forwarder.js';

/** Of the service, never of the agent server: a client may send them by habit, and they are not for what runs in there. */
const OWN_HEADERS = ['authorization', 'cookie', 'x-access-token'];

/** What programs in a sandbox may not tell a browser in the service's name. */
const FOREIGN_HEADERS = [
  'set-cookie',
  'clear-site-data',
  'content-security-policy',
  'strict-transport-security',
];

const LOOKS = ['GET', 'HEAD', 'OPTIONS'];

/**
 * Passes requests and WebSockets under `/api/v1/sandboxes/{id}/agent-server` on to the sandbox's agent server, which
 * asks for the sandbox's key itself.
 */
@Injectable()
export class AgentServerProxy implements BeforeApplicationShutdown {
  private readonly forwarder = new SandboxForwarder('The agent server of the sandbox did not answer.');

  constructor(
    private readonly running: RunningSandboxQueries,
    private readonly activity: SandboxActivityRepository,
  ) {}

  /** Middleware for plain requests; must come before anything that reads bodies. */
  middleware(): RequestHandler {
    // Express 5 hands on what a promise is rejected with.
    return async (request: Request, response: Response, next: NextFunction) => {
      const path = agentServerPath(request.url);
      if (!path) {
        next();
        return;
      }
      await this.passOn(request, response, path.sandboxId, path.rest);
    };
  }

  /** Passes a WebSocket on; refuses it where there is no agent server. */
  async upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const path = agentServerPath(request.url ?? '');
    const sandbox = path && (await this.running.target(path.sandboxId));
    if (!path || !sandbox) {
      refuseUpgrade(socket, '404 Not Found');
      return;
    }
    await this.forwarder.forwardUpgrade(request, socket, head, passage(sandbox.address, path.rest));
  }

  beforeApplicationShutdown(): void {
    this.forwarder.closeSockets();
  }

  private async passOn(request: Request, response: Response, id: string, rest: string): Promise<void> {
    const sandbox = await this.running.target(id);
    if (!sandbox) {
      throw new DomainError(
        'not_found',
        'sandbox_not_running',
        `No running sandbox has this id. If yours is paused, resume it: POST /api/v1/sandboxes/${id}/resume`,
      );
    }
    const { method } = request;
    response.once('finish', () => {
      // Whoever has no key of the sandbox does not keep it awake, nor does looking at it.
      if (!LOOKS.includes(method) && response.statusCode < 400) {
        this.activity.touch(id);
      }
    });
    await this.forwarder.forwardRequest(request, response, passage(sandbox.address, rest));
  }
}

function passage(target: string, path: string): ProxiedRequest {
  return {
    target,
    path,
    rewriteRequestHeaders: (headers) => remove(headers, OWN_HEADERS),
    rewriteResponseHeaders: (headers) => remove(headers, FOREIGN_HEADERS),
  };
}

function remove(headers: OutgoingHttpHeaders, names: readonly string[]): void {
  for (const name of names) {
    delete headers[name];
  }
}

const PREFIX = /^\/api\/v1\/sandboxes\/([0-9A-Za-z]{1,64})\/agent-server(?=[/?]|$)/;

/** An address under a sandbox's agent server. */
interface AgentServerPath {
  sandboxId: string;
  /** Path and query as the agent server gets them. */
  rest: string;
}

/** Takes the address of a request apart; null when it does not lie under an agent server. */
export function agentServerPath(address: string): AgentServerPath | null {
  const [prefix, sandboxId] = PREFIX.exec(address) ?? [];
  if (prefix === undefined || sandboxId === undefined) {
    return null;
  }
  const rest = address.slice(prefix.length);
  return { sandboxId, rest: rest.startsWith('/') ? rest : `/${rest}` };
}
