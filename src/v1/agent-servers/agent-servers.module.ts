import { Module } from '@nestjs/common';
import { AgentServerClient } from './agent-server.client.js';
import { AgentServerCommands } from './agent-server.commands.js';
import { AgentServerConnections } from './agent-server.connections.js';
import { AgentServerHttp } from './agent-server.http.js';

@Module({
  providers: [AgentServerConnections, AgentServerHttp, AgentServerClient, AgentServerCommands],
  exports: [AgentServerHttp, AgentServerClient, AgentServerCommands],
})
export class AgentServersModule {}
