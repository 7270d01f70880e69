import { Module, type OnApplicationShutdown } from '@nestjs/common';
import { AgentServerClient } from '@slipway/agent-client/agent-server.client.js';
import { AgentServerCommands } from '@slipway/agent-client/agent-server.commands.js';
import { AgentServerConnections } from '@slipway/agent-client/agent-server.connections.js';
import { AgentServerHttp } from '@slipway/agent-client/agent-server.http.js';

@Module({
  providers: [
    AgentServerConnections,
    {
      provide: AgentServerHttp,
      useFactory: (connections: AgentServerConnections) => new AgentServerHttp(connections),
      inject: [AgentServerConnections],
    },
    {
      provide: AgentServerClient,
      useFactory: (http: AgentServerHttp) => new AgentServerClient(http),
      inject: [AgentServerHttp],
    },
    {
      provide: AgentServerCommands,
      useFactory: (http: AgentServerHttp) => new AgentServerCommands(http),
      inject: [AgentServerHttp],
    },
  ],
  exports: [AgentServerHttp, AgentServerClient, AgentServerCommands],
})
export class AgentServersModule implements OnApplicationShutdown {
  constructor(private readonly connections: AgentServerConnections) {}

  async onApplicationShutdown(): Promise<void> {
    await this.connections.close();
  }
}
