import { Module } from '@nestjs/common';
import { AgentServerClient } from './agent-server.client.js';
import { AgentServerCommands } from './agent-server.commands.js';
import { AgentServerConnections } from './agent-server.connections.js';
import { AgentServerGit } from './agent-server.git.js';
import { AgentServerHttp } from './agent-server.http.js';

@Module({
  providers: [
    AgentServerConnections,
    AgentServerHttp,
    AgentServerClient,
    AgentServerCommands,
    AgentServerGit,
  ],
  exports: [AgentServerHttp, AgentServerClient, AgentServerCommands, AgentServerGit],
})
export class AgentServersModule {}
