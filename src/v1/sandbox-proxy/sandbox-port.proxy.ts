import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import type { Request, Response } from 'express';
import { AccessChanges } from '../../auth/access-changes.js';
import { OpenConnections } from '../../auth/open-connections.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { statusOf } from '@slipway/api/errors/problem.js';
import { namesMediaType } from '@slipway/api/requests/response-headers.js';
import { type RunningSandbox, RunningSandboxQueries } from '../sandboxes/sandbox.queries.js';
import { SandboxUrls } from '../sandboxes/sandbox-urls.js';
import { SandboxRepository } from '../sandboxes/sandbox.repository.js';
import { AgentServerAddresses } from './agent-server.targets.js';
import { portToken } from '../sandboxes/session-key.js';
import {
  judgePortAccess,
  parsePortRequest,
  portCookie,
  type PortRequest,
  proxyToPort,
} from './port-access.js';
import { SandboxForwarder } from '@slipway/reverse-proxy/sandbox-forwarder.js';
import { newForwarder } from './new-forwarder.js';

/** Explains by code why a port cannot be shown, and what to do. */
const WORDS: Record<string, [title: string, advice: string]> = {
  upstream_error: [
    'Nothing listens at this port yet',
    'Ask the agent to start its server there, then load this page again.',
  ],
  sandbox_not_running: [
    'This sandbox does not run',
    'Resume its conversation in the console, then load this page again.',
  ],
  unauthorized: ['This address is not complete', 'Open the port from its conversation in the console.'],
};

interface AuthorizedRequest {
  sandbox: RunningSandbox;
  target: string;
  origin: string;
  portRequest: PortRequest;
}

/**
 * Serves programs that agents started. Each port has its own host name, so that browsers see a separate origin. The programs
 * do not ask for a key, so the proxy does.
 */
@Injectable()
export class SandboxPortProxy implements BeforeApplicationShutdown {
  private readonly forwarder: SandboxForwarder;

  constructor(
    private readonly urls: SandboxUrls,
    private readonly running: RunningSandboxQueries,
    private readonly sandboxes: SandboxRepository,
    private readonly agentServers: AgentServerAddresses,
    private readonly changes: AccessChanges,
    connections: OpenConnections,
  ) {
    this.forwarder = newForwarder(
      'No web server answers at this port of the sandbox. Has the agent started one there yet?',
      connections,
    );
  }

  isFor(request: IncomingMessage): boolean {
    return this.urls.isPortHost(request.headers.host) && this.agentServers.find(request) === null;
  }

  /** @throws DomainError as `authorize` does */
  async upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const { portRequest, target, origin, sandbox } = await this.authorize(request);
    const onClientData = (): void => this.sandboxes.touch(sandbox.sandboxId);
    onClientData();
    const { userId: ownerId } = sandbox;
    const proxied = { ...proxyToPort(target, origin, portRequest), ownerId, onClientData };
    await this.forwarder.forwardUpgrade(request, socket, head, proxied);
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.forwarder.closeSockets();
  }

  /** Who opens a port in a browser reads words where it cannot be shown, and everybody else a problem. */
  async forward(request: Request, response: Response): Promise<void> {
    try {
      await this.answer(request, response);
    } catch (error) {
      const words = error instanceof DomainError ? WORDS[error.code] : undefined;
      const wantsPage = request.method === 'GET' && namesMediaType(request.headers.accept, 'text/html');
      if (!(error instanceof DomainError) || words === undefined || !wantsPage) {
        throw error;
      }
      sendWords(response.status(statusOf(error)), words);
    }
  }

  private async answer(request: Request, response: Response): Promise<void> {
    const authorized = await this.authorize(request);
    const { portRequest, target, origin, sandbox } = authorized;
    if (portRequest.token !== null && portRequest.acceptsPage) {
      redirectWithCookie(response, authorized);
      return;
    }
    this.sandboxes.touch(sandbox.sandboxId);
    const proxied = { ...proxyToPort(target, origin, portRequest), ownerId: sandbox.userId };
    await this.forwarder.forwardRequest(request, response, proxied);
  }

  /** @throws DomainError not_found where there is no such port; unauthorized or forbidden where access is denied */
  private async authorize(request: IncomingMessage): Promise<AuthorizedRequest> {
    const port = this.urls.portOf(request.headers.host);
    const origin = port && this.urls.portOrigin(port);
    if (!port || origin === null) {
      throw new DomainError('not_found', 'No port of a sandbox has this host name.');
    }
    const { sandboxId, name } = port;
    const sandbox = await this.changes.settled(() => this.running.target(sandboxId));
    const target = sandbox?.ports[name];
    if (!sandbox || target === undefined) {
      throw new DomainError(
        'sandbox_not_running',
        `No running sandbox has this id and a port ${name}. If yours is paused, resume it: POST /api/v1/sandboxes/${sandboxId}/resume`,
      );
    }
    const portRequest = parsePortRequest(request, isSecure(origin));
    const access = sandbox.mayOwnerAct
      ? judgePortAccess(portRequest, sandbox.sessionKey, origin)
      : 'unauthorized';
    switch (access) {
      case 'granted':
        return { sandbox, target, origin, portRequest };
      case 'cross-site':
        throw new DomainError('forbidden', 'A page of another site may not use this port.');
      case 'unauthorized':
        throw new DomainError(
          'unauthorized',
          `Open the address that exposed_urls of GET /api/v1/sandboxes?id=${sandboxId} names for ${name}, or send the session_api_key of the sandbox as X-Session-API-Key.`,
        );
    }
  }
}

function sendWords(response: Response, [title, advice]: [string, string]): void {
  const head = `<meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">`;
  response
    .set({ 'Cache-Control': 'no-store', 'Content-Security-Policy': `default-src 'none'` })
    .type('html')
    .send(
      `<!doctype html><html lang="en">${head}<title>${title}</title><h1>${title}</h1><p>${advice}</p></html>`,
    );
}

/** Redirects to the address without the token; from then on, the browser sends the token as a cookie. */
function redirectWithCookie(response: Response, { sandbox, origin, portRequest }: AuthorizedRequest): void {
  response.setHeader('Set-Cookie', portCookie(portToken(sandbox.sessionKey), isSecure(origin)));
  response.setHeader('Cache-Control', 'no-store');
  // A path that begins with two slashes would lead to another host.
  response.redirect(303, `${origin}${portRequest.url}`);
}

function isSecure(origin: string): boolean {
  return origin.startsWith('https:');
}
