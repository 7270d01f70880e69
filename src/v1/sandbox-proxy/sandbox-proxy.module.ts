import { Module } from '@nestjs/common';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { AgentServerProxy } from './agent-server.proxy.js';
import { SandboxPortProxy, SandboxWebSockets } from './sandbox-port.proxy.js';

/** The way into sandboxes through the service. */
@Module({
  imports: [SandboxesModule],
  providers: [AgentServerProxy, SandboxPortProxy, SandboxWebSockets],
})
export class SandboxProxyModule {}
