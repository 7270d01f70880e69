import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { Logger } from '@nestjs/common';
import type { Request, Response } from 'express';
import type { ProxyServer, ServerOptions } from 'http-proxy-3';
import { DomainError } from '../../common/errors/domain-error.js';
import { refuseUpgrade } from './refuse-upgrade.js';

/** Agent servers answer some requests only when the work is done: a large clone, a start. */
const ANSWER_TIMEOUT_MS = 15 * 60_000;

export interface ForwarderOptions {
  /** Headers of answers that do not get to the client. */
  hiddenHeaders: readonly string[];
  /** One sentence for when nothing answers. */
  noAnswer: string;
  proxy?: ServerOptions;
}

/** Passes requests and WebSockets on to a program in a sandbox. */
export class SandboxForwarder {
  private readonly logger = new Logger('SandboxProxy');
  private readonly sockets = new Set<Duplex>();
  private loading: Promise<ProxyServer> | null = null;

  constructor(private readonly options: ForwarderOptions) {}

  /**
   * @param target base address of the program
   * @throws DomainError bad_gateway when it does not answer
   */
  async web(request: Request, response: Response, target: string): Promise<void> {
    const proxy = await this.proxy();
    if (response.destroyed) {
      // The client left meanwhile; nobody would end what is begun for it.
      return;
    }
    await new Promise<void>((resolve, reject) => {
      response.once('close', resolve);
      proxy.web(request, response, { target }, (cause) => {
        reject(new DomainError('bad_gateway', 'upstream_error', this.options.noAnswer, { cause }));
      });
    });
  }

  async socket(request: IncomingMessage, socket: Socket, head: Buffer, target: string): Promise<void> {
    const proxy = await this.proxy();
    this.sockets.add(socket);
    socket.once('close', () => this.sockets.delete(socket));
    proxy.ws(request, socket, head, { target }, () => refuseUpgrade(socket, '502 Bad Gateway'));
  }

  /** An open WebSocket would hold the stop of the HTTP server. */
  endSockets(): void {
    for (const socket of this.sockets) {
      socket.destroy();
    }
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
      ...this.options.proxy,
    });
    proxy.on('proxyRes', (answer, _request, response) => {
      for (const name of this.options.hiddenHeaders) {
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
}
