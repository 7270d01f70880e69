import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable, Logger } from '@nestjs/common';
import { errorStack } from '@slipway/common/errors/error-message.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { problemOf } from '@slipway/api/errors/problem.js';
import { AgentServerProxy } from './agent-server.proxy.js';
import { isWebSocket, refuseUpgrade } from '@slipway/reverse-proxy/sandbox-forwarder.js';
import { SandboxPortProxy } from './sandbox-port.proxy.js';

/** All WebSockets are for sandboxes; the service itself has none. */
@Injectable()
export class WebSocketRouter {
  private readonly logger = new Logger(WebSocketRouter.name);

  constructor(
    private readonly agentServers: AgentServerProxy,
    private readonly ports: SandboxPortProxy,
  ) {}

  attach(server: Server, hosts: { accepts(request: IncomingMessage): boolean }): void {
    // Clients that offer other protocols (HTTP/2) get a plain response; Node.js before 24.9 would refuse them.
    Object.assign(server, { shouldUpgradeCallback: isWebSocket });
    server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      // A socket error of a client that has left would end the process without a listener.
      socket.on('error', () => socket.destroy());
      if (!hosts.accepts(request)) {
        refuseUpgrade(socket, '421 Misdirected Request');
        return;
      }
      const proxy = this.ports.isFor(request) ? this.ports : this.agentServers;
      proxy.upgrade(request, socket, head).catch((error: unknown) => this.refuse(socket, error));
    });
  }

  private refuse(socket: Socket, error: unknown): void {
    if (error instanceof DomainError) {
      const { status, title } = problemOf(error, null);
      const { retryAfterSeconds: seconds } = error;
      const retryAfter = seconds === undefined ? '' : `\r\nRetry-After: ${seconds}`;
      refuseUpgrade(socket, `${status} ${title}${retryAfter}`);
    } else {
      this.logger.error('failed to forward a WebSocket', errorStack(error));
      refuseUpgrade(socket, '500 Internal Server Error');
    }
  }
}
