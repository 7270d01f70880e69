import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { SESSION_KEY } from '../../packages/agent-server/test/support/agent-server-client.js';
import {
  startSeparateAgentServer,
  type SeparateAgentServer,
} from '../../packages/agent-server/test/support/test-agent-server.js';
import { newSessionKey } from '../../src/v1/sandboxes/session-key.js';
import type { Sandbox } from '../../src/v1/sandboxes/sandbox.entity.js';
import { ConversationRows } from './conversation-rows.js';
import type { TestApp } from './create-test-app.js';

const MOST = 100;

/** Sandboxes at one agent server, which the tests of a file share. */
export interface AgentSandboxes {
  agent: SeparateAgentServer;
  /** One more, and a folder of its own there. */
  open(userId: string): Promise<{ sandbox: Sandbox; folder: string }>;
}

export function useAgentSandboxes(app: TestApp): AgentSandboxes {
  // Two sandboxes never have one key.
  const keys = Array.from({ length: MOST }, newSessionKey);
  const open = async (userId: string): Promise<{ sandbox: Sandbox; folder: string }> => {
    const address = `http://127.0.0.1:${sandboxes.agent.port}`;
    const sandbox = await new ConversationRows(app).sandbox(userId, { key: keys.pop() ?? '', address });
    const folder = path.join(sandboxes.agent.workspace, randomUUID());
    await mkdir(folder);
    return { sandbox, folder };
  };
  const sandboxes = { open } as AgentSandboxes;
  beforeAll(async () => {
    sandboxes.agent = await startSeparateAgentServer({ sessionKeys: [SESSION_KEY, ...keys] });
  });
  afterAll(() => sandboxes.agent.stop());
  return sandboxes;
}
