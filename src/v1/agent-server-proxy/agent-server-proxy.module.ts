import { Module } from '@nestjs/common';
import { SandboxesModule } from '../sandboxes/sandboxes.module.js';
import { AgentServerProxy } from './agent-server.proxy.js';

/** The way to agent servers through the service. */
@Module({
  imports: [SandboxesModule],
  providers: [AgentServerProxy],
})
export class AgentServerProxyModule {}
