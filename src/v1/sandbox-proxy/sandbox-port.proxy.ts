import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { DomainError } from '../../common/errors/domain-error.js';
import type { SandboxPort } from '../sandboxes/port-host.js';
import { opensPorts, portToken } from '../sandboxes/port-token.js';
import { type RunningSandbox, RunningSandboxes } from '../sandboxes/running-sandboxes.js';
import { SandboxActivity } from '../sandboxes/sandbox-activity.js';
import { SandboxAddresses } from '../sandboxes/sandbox-addresses.js';
import { portCookie } from './port-cookie.js';
import { type PortVisit, readPortVisit } from './port-visit.js';
import { refuseUpgrade } from './refuse-upgrade.js';
import { SandboxForwarder } from './sandbox-forwarder.js';

/** Whom a request may go to. */
interface Way {
  sandbox: RunningSandbox;
  /** Where the service reaches the port. */
  target: string;
  visit: PortVisit;
}

/**
 * Passes requests and WebSockets on to what agents have started in their sandboxes: each port has a host name of its
 * own, so that to a browser it is a site of its own, with nothing of the service's. Those programs ask nobody for a key;
 * so it is asked for here.
 */
@Injectable()
export class SandboxPortProxy implements BeforeApplicationShutdown {
  private readonly forwarder = new SandboxForwarder({
    // Below the name of a port there is nothing that it could speak for.
    hiddenHeaders: ['strict-transport-security'],
    noAnswer: 'Nothing answers at this port of the sandbox. Has the agent started a server there yet?',
    // Cookies of one port are not for others.
    proxy: { cookieDomainRewrite: '' },
  });

  constructor(
    private readonly addresses: SandboxAddresses,
    private readonly running: RunningSandboxes,
    private readonly activity: SandboxActivity,
  ) {}

  /** Middleware for plain requests; must come before all that speaks for the service itself. */
  middleware(): RequestHandler {
    return async (request: Request, response: Response, next: NextFunction) => {
      const port = this.addresses.portOf(request.headers.host);
      if (!port) {
        next();
        return;
      }
      await this.passOn(request, response, port);
    };
  }

  /** Whether a request is for a port of a sandbox. */
  isFor({ headers }: IncomingMessage): boolean {
    return this.addresses.portOf(headers.host) !== null;
  }

  /** Passes a WebSocket on; refuses it without the key. */
  async upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const port = this.addresses.portOf(request.headers.host);
    try {
      if (port) {
        const { visit, target, sandbox } = await this.find(request, port);
        this.activity.touch(sandbox.sandboxId);
        clean(request, visit);
        await this.forwarder.socket(request, socket, head, target);
        return;
      }
    } catch (error) {
      if (!(error instanceof DomainError)) {
        throw error;
      }
      refuseUpgrade(socket, error.kind === 'unauthorized' ? '401 Unauthorized' : '404 Not Found');
      return;
    }
    refuseUpgrade(socket, '404 Not Found');
  }

  beforeApplicationShutdown(): void {
    this.forwarder.endSockets();
  }

  private async passOn(request: Request, response: Response, port: SandboxPort): Promise<void> {
    const { sandbox, target, visit } = await this.find(request, port);
    if (visit.token !== null && visit.isPage) {
      this.takeToPage(response, port, sandbox, visit);
      return;
    }
    this.activity.touch(sandbox.sandboxId);
    clean(request, visit);
    await this.forwarder.web(request, response, target);
  }

  /** To the address without the token, which the browser has as a cookie from then on. */
  private takeToPage(
    response: Response,
    port: SandboxPort,
    { sessionKey }: RunningSandbox,
    { url }: PortVisit,
  ): void {
    const origin = this.addresses.portOrigin(port) ?? '';
    response.setHeader('Set-Cookie', portCookie(portToken(sessionKey), origin.startsWith('https:')));
    response.setHeader('Cache-Control', 'no-store');
    // Whole, as a path of two slashes would lead to another host.
    response.redirect(303, `${origin}${url}`);
  }

  /**
   * @throws DomainError not_found where there is nothing, unauthorized for whoever may not
   */
  private async find(request: IncomingMessage, { sandboxId, name }: SandboxPort): Promise<Way> {
    const sandbox = await this.running.target(sandboxId);
    const target = sandbox?.ports[name];
    if (!sandbox || target === undefined) {
      throw new DomainError(
        'not_found',
        'sandbox_not_running',
        `No running sandbox has this id and a port ${name}. If yours is paused, resume it: POST /api/v1/sandboxes/${sandboxId}/resume`,
      );
    }
    const visit = readPortVisit(request);
    const { token, cookie, key } = visit;
    if (![token, cookie, key].some((secret) => secret !== null && opensPorts(secret, sandbox.sessionKey))) {
      throw new DomainError(
        'unauthorized',
        'unauthorized',
        `Open the address that exposed_urls of GET /api/v1/sandboxes?id=${sandboxId} names for ${name}, or send the session_api_key of the sandbox as X-Session-API-Key.`,
      );
    }
    return { sandbox, target, visit };
  }
}

/** What opened the port is not for what listens there. */
function clean(request: IncomingMessage, { url, otherCookies }: PortVisit): void {
  request.url = url;
  delete request.headers['x-session-api-key'];
  if (otherCookies === '') {
    delete request.headers.cookie;
  } else {
    request.headers.cookie = otherCookies;
  }
}
