import { Module } from '@nestjs/common';
import { AgentServerClient } from './agent-server.client.js';
import { AgentServerHttp } from './agent-server.http.js';

/** How the service talks to what runs inside sandboxes. */
@Module({
  providers: [AgentServerHttp, AgentServerClient],
  exports: [AgentServerHttp, AgentServerClient],
})
export class AgentServersModule {}
