import { api, bodyOf, ProblemError, runningSandbox, type Schemas } from '../api/client.js';

export interface Candidate {
  kind: 'shttp' | 'sse' | 'stdio';
  name: string;
  /** An address, or a command with its arguments. */
  target: string;
  key: string;
}

export type TestResult = { ok: true; tools: string[] } | { ok: false; error: string };

/** Tries a tool server where agents would use it: in a sandbox that runs, or in one that is made for it and deleted. */
export async function testToolServer(candidate: Candidate): Promise<TestResult> {
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
async function testIn(sandbox: Schemas['SandboxInfo'], candidate: Candidate): Promise<TestResult> {
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
  return (await response.json()) as TestResult;
}
