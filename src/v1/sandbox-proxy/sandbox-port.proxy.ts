import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { DomainError } from '../../common/errors/domain-error.js';
import { errorStack } from '../../common/errors/error-message.js';
import { SandboxActivityRepository } from '../sandboxes/sandbox-activity.repository.js';
import { SandboxUrls } from '../sandboxes/sandbox-urls.js';
import { type RunningSandbox, RunningSandboxQueries } from '../sandboxes/sandbox.queries.js';
import { portToken } from '../sandboxes/session-key.js';
import { AgentServerProxy } from './agent-server.proxy.js';
import { refuseUpgrade, SandboxForwarder } from './sandbox-forwarder.js';
import {
  judgePortAccess,
  portCookie,
  proxyToPort,
  type PortRequest,
  parsePortRequest,
} from './port-access.js';

const STATUS_LINES = new Map([
  ['unauthorized', '401 Unauthorized'],
  ['forbidden', '403 Forbidden'],
  ['not_found', '404 Not Found'],
]);

/** A request that may go to a port. */
interface Way {
  sandbox: RunningSandbox;
  /** Where the service reaches the port. */
  target: string;
  /** Where clients do. */
  origin: string;
  visit: PortRequest;
}

/**
 * Passes requests and WebSockets on to what agents have started in their sandboxes: each port has a host name of its
 * own, so that to a browser it is an origin of its own, with nothing of the service's. Those programs ask nobody for a
 * key; so it is asked for here.
 */
@Injectable()
export class SandboxPortProxy implements BeforeApplicationShutdown {
  private readonly forwarder = new SandboxForwarder(
    'Nothing answers at this port of the sandbox as a web server does. Has the agent started one there yet?',
  );

  constructor(
    private readonly addresses: SandboxUrls,
    private readonly running: RunningSandboxQueries,
    private readonly activity: SandboxActivityRepository,
  ) {}

  /** Middleware for plain requests; must come before all that speaks for the service itself. */
  middleware(): RequestHandler {
    return async (request: Request, response: Response, next: NextFunction) => {
      if (this.isFor(request)) {
        await this.passOn(request, response);
      } else {
        next();
      }
    };
  }

  /** Whether a request is for a port of a sandbox. */
  isFor({ headers }: IncomingMessage): boolean {
    return this.addresses.isPortHost(headers.host);
  }

  /** Passes a WebSocket on; refuses it without the key. */
  async upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    try {
      const { visit, target, origin, sandbox } = await this.find(request);
      const onUse = (): void => this.activity.touch(sandbox.sandboxId);
      onUse();
      const passage = { ...proxyToPort(target, origin, visit), onUse };
      await this.forwarder.forwardUpgrade(request, socket, head, passage);
    } catch (error) {
      const line = error instanceof DomainError ? STATUS_LINES.get(error.kind) : undefined;
      if (line === undefined) {
        throw error;
      }
      refuseUpgrade(socket, line);
    }
  }

  beforeApplicationShutdown(): void {
    this.forwarder.closeSockets();
  }

  private async passOn(request: Request, response: Response): Promise<void> {
    const way = await this.find(request);
    const { visit, target, origin, sandbox } = way;
    if (visit.token !== null && visit.isPage) {
      takeToPage(response, way);
      return;
    }
    this.activity.touch(sandbox.sandboxId);
    await this.forwarder.forwardRequest(request, response, proxyToPort(target, origin, visit));
  }

  /** @throws DomainError not_found where there is nothing; unauthorized or forbidden for whoever may not */
  private async find(request: IncomingMessage): Promise<Way> {
    const port = this.addresses.portOf(request.headers.host);
    const origin = port && this.addresses.portOrigin(port);
    if (!port || origin === null) {
      throw new DomainError('not_found', 'not_found', 'No port of a sandbox has this host name.');
    }
    const { sandboxId, name } = port;
    const sandbox = await this.running.target(sandboxId);
    const target = sandbox?.ports[name];
    if (!sandbox || target === undefined) {
      throw new DomainError(
        'not_found',
        'sandbox_not_running',
        `No running sandbox has this id and a port ${name}. If yours is paused, resume it: POST /api/v1/sandboxes/${sandboxId}/resume`,
      );
    }
    const visit = parsePortRequest(request, isSecure(origin));
    switch (judgePortAccess(visit, sandbox.sessionKey, origin)) {
      case 'open':
        return { sandbox, target, origin, visit };
      case 'foreign':
        throw new DomainError('forbidden', 'forbidden', 'A page of another site may not use this port.');
      case 'closed':
        throw new DomainError(
          'unauthorized',
          'unauthorized',
          `Open the address that exposed_urls of GET /api/v1/sandboxes?id=${sandboxId} names for ${name}, or send the session_api_key of the sandbox as X-Session-API-Key.`,
        );
    }
  }
}

/** To the address without the token, which the browser has as a cookie from then on. */
function takeToPage(response: Response, { sandbox, origin, visit }: Way): void {
  response.setHeader('Set-Cookie', portCookie(portToken(sandbox.sessionKey), isSecure(origin)));
  response.setHeader('Cache-Control', 'no-store');
  // Whole, as a path of two slashes would lead to another host.
  response.redirect(303, `${origin}${visit.url}`);
}

function isSecure(origin: string): boolean {
  return origin.startsWith('https:');
}

/** Takes in WebSockets: all are for sandboxes, the service itself has none. */
@Injectable()
export class SandboxWebSockets {
  private readonly logger = new Logger(SandboxWebSockets.name);

  constructor(
    private readonly agentServers: AgentServerProxy,
    private readonly ports: SandboxPortProxy,
  ) {}

  attach(server: Server): void {
    // Others (clients that offer HTTP/2) are answered as if they had not asked; by Node.js before 24.9 they are refused.
    Object.assign(server, { shouldUpgradeCallback: isForWebSocket });
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      // Without a listener an error of a client that left would end the process.
      socket.on('error', () => socket.destroy());
      const proxy = this.ports.isFor(request) ? this.ports : this.agentServers;
      proxy.upgrade(request, socket, head).catch((error: unknown) => {
        this.logger.error('upgrade failed', errorStack(error));
        refuseUpgrade(socket, '500 Internal Server Error');
      });
    });
  }
}

function isForWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}
