import { jsonText, parseJson } from '@slipway/common/json-access.js';
import { type ApiServer, ApiServerError } from './api-server.js';
import { AGENT_CONTAINER } from './sandbox-manifest.js';

/** Version 5 can close the standard input. */
const PROTOCOL = 'v5.channel.k8s.io';
const STDIN = 0;
const STATUS = 3;
const CLOSE = 255;
const WRITE_TIMEOUT_MS = 10_000;

export interface WriteMoments {
  permitted: Promise<void>;
  /** Aborts when the program is seen to have read the line: some nodes keep the attach open for longer. */
  arrived: AbortSignal;
}

/** Writes a line, then closes. @throws ApiServerError although it may have been written; the signal's reason */
export async function writeToStandardInput(
  api: ApiServer,
  pods: string,
  pod: string,
  line: string,
  { permitted, arrived }: WriteMoments,
  signal: AbortSignal,
): Promise<void> {
  const query = { container: AGENT_CONTAINER, stdin: true, stdout: false, stderr: false };
  const socket = await api.webSocket(`${pods}/${encodeURIComponent(pod)}/attach`, [PROTOCOL], query, signal);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // It may fail before it is waited for.
  promise.catch(() => undefined);
  const fail = (message: string): void => reject(new ApiServerError(message, null, null));
  const abort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('aborted'));
  const timer = setTimeout(() => fail('the attach timed out'), WRITE_TIMEOUT_MS);
  socket.on('error', ({ message }) => fail(message));
  socket.once('close', () => fail('the attach was cut'));
  socket.on('message', (frame: Buffer) => {
    // An empty frame only says that the attach has begun. Closing now could lose what the node has not read yet.
    if (frame[0] !== STATUS || frame.length === 1) {
      return;
    }
    const status = parseJson(frame.subarray(1).toString('utf8'));
    if (jsonText(status, 'status') === 'Failure') {
      fail(jsonText(status, 'message') ?? 'the attach failed');
    } else {
      resolve();
    }
  });
  signal.addEventListener('abort', abort, { once: true });
  arrived.addEventListener('abort', () => resolve(), { once: true });
  try {
    await permitted;
    if (!arrived.aborted) {
      socket.resume();
      socket.send(Buffer.concat([Buffer.of(STDIN), Buffer.from(`${line}\n`)]));
      socket.send(Buffer.of(CLOSE, STDIN));
      await promise;
    }
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
    socket.terminate();
  }
}
