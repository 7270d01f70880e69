import { Agent, fetch as fetchWith, type RequestInit, Response } from 'undici';
import { requestOrigin, requireSandboxAddress } from '../../src/v1/agent-servers/sandbox-address.js';

/** Fetches from a program in a sandbox, whose address is `http://host:port` or `unix:/path`. */
export async function sandboxFetch(address: string, path: string, init: RequestInit = {}): Promise<Response> {
  const parsed = requireSandboxAddress(address);
  const dispatcher = new Agent(parsed.kind === 'unix' ? { connect: { socketPath: parsed.socketPath } } : {});
  try {
    const response = await fetchWith(`${requestOrigin(parsed)}${path}`, { ...init, dispatcher });
    // Read while the connection is there.
    const body = await response.arrayBuffer();
    return new Response(body.byteLength === 0 ? null : body, response);
  } finally {
    await dispatcher.destroy();
  }
}
