import { api, bodyOf, ProblemError, runningSandbox, type Schemas } from '../api/client.js';

export interface Candidate {
  kind: 'shttp' | 'sse' | 'stdio';
  name: string;
  /** An address, or a command with its arguments. */
  target: string;
  key: string;
}

/**
 * Names the tools of a server, tried where agents would use it: in a sandbox that runs, or in one that is made for it.
 *
 * @throws Error with the reason where the server cannot be used
 */
export async function testToolServer(candidate: Candidate): Promise<string[]> {
  const { items } = await bodyOf(api.GET('/api/v1/sandboxes/search', { params: { query: { limit: 100 } } }));
  const running = items.find(({ status }) => status === 'RUNNING');
  if (running !== undefined) {
    return await testIn(running, candidate);
  }
  const { id } = await bodyOf(api.POST('/api/v1/sandboxes', { body: {} }));
  try {
    return await testIn(await runningSandbox(id), candidate);
  } finally {
    await bodyOf(api.DELETE('/api/v1/sandboxes/{id}', { params: { path: { id } } }));
  }
}

/** The agent server of a sandbox is asked directly, with the key of the sandbox. */
async function testIn(sandbox: Schemas['SandboxInfo'], candidate: Candidate): Promise<string[]> {
  const { kind, name, target, key } = candidate;
  const [command, ...args] = target.split(/\s+/);
  const headers = key === '' ? {} : { Authorization: `Bearer ${key}` };
  const server = kind === 'stdio' ? { command, args } : { transport: kind, url: target, headers };
  const response = await fetch(`/api/v1/sandboxes/${sandbox.id}/agent-server/api/mcp/test`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Session-API-Key': sandbox.session_api_key ?? '' },
    body: JSON.stringify({ name: name === '' ? 'test' : name, server }),
  });
  if (!response.ok) {
    throw new ProblemError(response.status, `The sandbox answered ${response.status}. Try again.`);
  }
  const { ok, tools = [], error } = (await response.json()) as { ok: boolean; tools?: string[]; error?: string };
  if (!ok) {
    throw new Error(`It does not work: ${error}`);
  }
  return tools;
}
