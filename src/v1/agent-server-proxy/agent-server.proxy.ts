import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type BeforeApplicationShutdown, Injectable, Logger } from '@nestjs/common';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { ProxyServer, ServerOptions } from 'http-proxy-3';
import { DomainError } from '../../common/errors/domain-error.js';
import { SandboxActivity } from '../sandboxes/sandbox-activity.js';
import { RunningSandboxes } from '../sandboxes/running-sandboxes.js';
import { agentServerPath } from './agent-server-path.js';

/** Agent servers answer some requests only when the work is done: a large clone, a start. */
const ANSWER_TIMEOUT_MS = 15 * 60_000;
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
  private readonly logger = new Logger(AgentServerProxy.name);
  private readonly sockets = new Set<Duplex>();
  private loading: Promise<ProxyServer> | null = null;

  constructor(
    private readonly running: RunningSandboxes,
    private readonly activity: SandboxActivity,
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

  /** Passes WebSockets on as well; others are refused, since the service itself has none. */
  attach(server: Server): void {
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      this.upgrade(request, socket, head).catch((error: unknown) => {
        this.logger.error('upgrade failed', error instanceof Error ? error.stack : String(error));
        refuse(socket, '500 Internal Server Error');
      });
    });
  }

  /** An open WebSocket would hold the stop of the HTTP server. */
  beforeApplicationShutdown(): void {
    for (const socket of this.sockets) {
      socket.destroy();
    }
  }

  private async passOn(request: Request, response: Response, id: string, rest: string): Promise<void> {
    const options = await this.optionsFor(id);
    if (!options) {
      throw new DomainError(
        'not_found',
        'sandbox_not_running',
        `No running sandbox has this id. If yours is paused, resume it: POST /api/v1/sandboxes/${id}/resume`,
      );
    }
    if (response.destroyed) {
      // The client left meanwhile; nobody would end what is begun for it.
      return;
    }
    const { method } = request;
    response.once('finish', () => {
      // Whoever has no key of the sandbox does not keep it awake, nor does looking at it.
      if (!LOOKS.includes(method) && response.statusCode < 400) {
        this.activity.touch(id);
      }
    });
    const proxy = await this.proxy();
    prepare(request, rest);
    await new Promise<void>((resolve, reject) => {
      response.once('close', resolve);
      proxy.web(request, response, options, (error) => {
        reject(
          new DomainError(
            'bad_gateway',
            'upstream_error',
            'The agent server of the sandbox did not answer.',
            {
              cause: error,
            },
          ),
        );
      });
    });
  }

  private async upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    // Without a listener an error of a client that left would end the process.
    socket.on('error', () => socket.destroy());
    const path = agentServerPath(request.url ?? '');
    const options = path && (await this.optionsFor(path.sandboxId));
    if (!path || !options) {
      refuse(socket, '404 Not Found');
      return;
    }
    const proxy = await this.proxy();
    prepare(request, path.rest);
    this.sockets.add(socket);
    socket.once('close', () => this.sockets.delete(socket));
    proxy.ws(request, socket, head, options, () => refuse(socket, '502 Bad Gateway'));
  }

  /** Loaded with the first request that it is for. */
  private proxy(): Promise<ProxyServer> {
    this.loading ??= this.open();
    return this.loading;
  }

  private async open(): Promise<ProxyServer> {
    const { createProxyServer } = await import('http-proxy-3');
    const proxy = createProxyServer({
      xfwd: true,
      changeOrigin: true,
      proxyTimeout: ANSWER_TIMEOUT_MS,
    });
    proxy.on('proxyRes', (answer, _request, response) => {
      for (const name of FOREIGN_HEADERS) {
        delete answer.headers[name];
      }
      // The library leaves a client waiting whose answer breaks off: the sandbox may have been paused or have died.
      answer.once('close', () => {
        if (!answer.complete) {
          response.destroy();
        }
      });
    });
    // A WebSocket that breaks is the two ends' business; both are closed already.
    proxy.on('error', (error) => {
      this.logger.debug('a passed-on connection broke', { error: error.message });
    });
    return proxy;
  }

  private async optionsFor(sandboxId: string): Promise<ServerOptions | null> {
    const sandbox = await this.running.target(sandboxId);
    return sandbox && { target: sandbox.address };
  }
}

function prepare(request: IncomingMessage, rest: string): void {
  request.url = rest;
  for (const name of OWN_HEADERS) {
    delete request.headers[name];
  }
}

function refuse(socket: Duplex, status: string): void {
  if (socket.writable) {
    socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  }
}
