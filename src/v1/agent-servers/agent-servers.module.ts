import { Module } from '@nestjs/common';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerCommands } from '@slipway/agent-client/agent-server.commands.js';
import { AgentServerConnections } from '@slipway/agent-client/agent-server.connections.js';
import { AgentServerHttp } from '@slipway/agent-client/agent-server.http.js';

@Module({
  providers: [AgentServerConnections, AgentServerHttp, AgentServerClient, AgentServerCommands],
  exports: [AgentServerHttp, AgentServerClient, AgentServerCommands],
})
export class AgentServersModule {}
