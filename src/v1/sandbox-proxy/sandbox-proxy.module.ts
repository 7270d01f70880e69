import { Module } from '@nestjs/common';
import { AuthModule } from '../../auth/auth.module.js';
import { DatabaseNotificationsModule } from '../../database/database-notifications.module.js';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { AgentServerAddresses, AgentServerTargets } from './agent-server.targets.js';
import { AgentServerPorts } from './agent-server.ports.js';
import { AgentServerProxy } from './agent-server.proxy.js';
import { CloudProxyController } from './cloud-proxy.controller.js';
import { SandboxPortProxy } from './sandbox-port.proxy.js';
import { WebSocketRouter } from './websocket.router.js';

@Module({
  imports: [AuthModule, DatabaseNotificationsModule, SandboxesModule],
  controllers: [CloudProxyController],
  providers: [
    AgentServerProxy,
    AgentServerAddresses,
    AgentServerPorts,
    AgentServerTargets,
    SandboxPortProxy,
    WebSocketRouter,
  ],
})
export class SandboxProxyModule {}
