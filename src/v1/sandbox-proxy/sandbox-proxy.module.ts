import { Module } from '@nestjs/common';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { AgentServerProxy } from './agent-server.proxy.js';
import { SandboxPortProxy } from './sandbox-port.proxy.js';
import { WebSocketRouter } from './websocket.router.js';

/** Access to programs in sandboxes through the service. */
@Module({
  imports: [SandboxesModule],
  providers: [AgentServerProxy, SandboxPortProxy, WebSocketRouter],
})
export class SandboxProxyModule {}
