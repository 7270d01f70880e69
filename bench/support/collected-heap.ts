import { jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';

const METHODS = ['HeapProfiler.collectGarbage', 'Runtime.getHeapUsage'];

/**
 * Bytes on the heap of a Node.js process that has its inspector at a port, after a full collection: what it holds, without
 * what is no longer referenced (https://chromedevtools.github.io/devtools-protocol/v8/HeapProfiler/#method-collectGarbage).
 */
export async function collectedHeap(inspectorPort: number): Promise<number> {
  const [target] = (await (await fetch(`http://127.0.0.1:${inspectorPort}/json/list`)).json()) as unknown[];
  const socket = new WebSocket(jsonText(target, 'webSocketDebuggerUrl') ?? '');
  try {
    return await new Promise((resolve, reject) => {
      const ask = (id: number): void => socket.send(JSON.stringify({ id, method: METHODS[id] }));
      socket.addEventListener('error', () => reject(new Error('the inspector of the service is away')));
      socket.addEventListener('open', () => ask(0));
      socket.addEventListener('message', ({ data }) => {
        const answer = parseJson(String(data));
        if (jsonNumber(answer, 'id') === 0) {
          // Not before: what is asked in the meantime is answered before the collection, which is a task of its own.
          ask(1);
        } else {
          resolve(jsonNumber(answer, 'result', 'usedSize') ?? NaN);
        }
      });
    });
  } finally {
    socket.close();
  }
}
