import type { AgentServerOptions } from '../../src/command-line.js';
import { listenUnassigned } from '../../src/start-agent-server.js';

/** What an agent server is started with, in whatever process. */
export type PlainOptions = Omit<AgentServerOptions, 'createEngine'>;

export interface ListeningServer {
  port: number;
  stop(): Promise<void>;
}

export async function listenAssigned(options: AgentServerOptions): Promise<ListeningServer> {
  const started = await listenUnassigned(options);
  await started.assign(options);
  const { port } = started;
  if (port === null) {
    throw new Error('the agent server listens on a socket');
  }
  return { port, stop: async () => await started.stop() };
}
