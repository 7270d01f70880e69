import { Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { ApiServer } from '../../common/kubernetes/api-server.js';
import { connectToPod } from '../../common/kubernetes/pod-socket.js';
import { AppConfig } from '../../config/app-config.js';
import { AgentServerClient } from './agent-server.client.js';
import { AgentServerCommands } from './agent-server.commands.js';
import { AgentServerConnections } from './agent-server.connections.js';
import { AgentServerGit } from './agent-server.git.js';
import { AgentServerHttp } from './agent-server.http.js';
import { connectPodsWith } from './sandbox-connection.js';

/** The service's clients of the agent servers inside sandboxes. */
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
export class AgentServersModule implements OnModuleInit, OnApplicationShutdown {
  private readonly api: ApiServer | null;

  constructor({ sandboxes }: AppConfig) {
    const { backend, kubeconfig } = sandboxes;
    // Independent of `SANDBOX_REACH`: a replica with another setting may have stored the address, as in a rolling
    // restart.
    this.api = backend === 'kubernetes' ? new ApiServer(kubeconfig) : null;
  }

  onModuleInit(): void {
    const { api } = this;
    if (api !== null) {
      connectPodsWith((port) => connectToPod(api, port));
    }
  }

  onApplicationShutdown(): void {
    this.api?.close();
  }
}
