import type { GitAccess } from '../../agent-protocol/git-access.js';
import type { AgentEngine } from './agent-engine.js';

/** What an engine may know of the conversation that it is made for. */
export interface EngineContext {
  conversationId: string;
  /** What it may do on git servers, as it is when it is called. */
  gitAccess: () => GitAccess | null;
}

/** Makes the engine of a conversation when the conversation first runs. */
export type CreateEngine = (context: EngineContext) => Promise<AgentEngine>;
