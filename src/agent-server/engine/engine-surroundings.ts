import type { AgentServerOptions } from '../agent-server-options.js';

/** What an engine may know of its server. */
export type EngineSurroundings = Pick<
  AgentServerOptions,
  'webhook' | 'sessionKeys' | 'toolWrapper' | 'environment' | 'conversationsPath'
>;
