import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable, Logger } from '@nestjs/common';
import { AgentServerProxy } from './agent-server.proxy.js';
import { refuseUpgrade } from './refuse-upgrade.js';
import { SandboxPortProxy } from './sandbox-port.proxy.js';

/** Takes in WebSockets: all are for sandboxes, the service itself has none. */
@Injectable()
export class SandboxSockets {
  private readonly logger = new Logger(SandboxSockets.name);

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
        this.logger.error('upgrade failed', error instanceof Error ? error.stack : String(error));
        refuseUpgrade(socket, '500 Internal Server Error');
      });
    });
  }
}

function isForWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}
