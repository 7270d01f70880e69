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
