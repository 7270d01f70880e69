import { Agent, fetch as fetchWith, type RequestInit, Response } from 'undici';
import { connectToSandbox } from '@slipway/sandboxes/sandbox-connection.js';
import { requestOrigin, requireSandboxAddress } from '@slipway/sandboxes/sandbox-address.js';

/** Fetches from a program in a sandbox, at an address that its backend reported. */
export async function sandboxFetch(address: string, path: string, init: RequestInit = {}): Promise<Response> {
  const parsed = requireSandboxAddress(address);
  const dispatcher = new Agent(
    parsed.kind === 'tcp'
      ? {}
      : {
          connect: (_options, connected) => {
            connectToSandbox(parsed).then(
              (socket) => connected(null, socket),
              (error: Error) => connected(error, null),
            );
          },
        },
  );
  try {
    const response = await fetchWith(`${requestOrigin(parsed)}${path}`, { ...init, dispatcher });
    // Read while the connection is there.
    const body = await response.arrayBuffer();
    return new Response(body.byteLength === 0 ? null : body, response);
  } finally {
    await dispatcher.destroy();
  }
}
