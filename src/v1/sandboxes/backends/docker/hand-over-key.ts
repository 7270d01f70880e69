import type { Container } from 'dockerode';

/**
 * Writes the session key to the standard input of a container that is about to start. Before the start, so that a
 * program that runs has its key whatever becomes of this process: the engine keeps the line until it is read.
 */
export async function handOverKey(container: Container, sessionKey: string): Promise<void> {
  const input = await container.attach({ stream: true, stdin: true, hijack: true });
  await new Promise<void>((resolve, reject) => {
    // Later ones too: the engine ends the connection when the program has read its input.
    input.on('error', reject);
    input.end(`${JSON.stringify({ session_api_key: sessionKey })}\n`, () => resolve());
  });
}
