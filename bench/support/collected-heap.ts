import { jsonNumber, jsonText, parseJson } from '@slipway/common/json-access.js';

/**
 * Bytes on the heap of a Node.js process that has its inspector at a port, after a full collection: what it holds, without
 * what is no longer referenced (https://chromedevtools.github.io/devtools-protocol/v8/HeapProfiler/#method-collectGarbage).
 */
export async function collectedHeap(inspectorPort: number): Promise<number> {
  const [target] = (await (await fetch(`http://127.0.0.1:${inspectorPort}/json/list`)).json()) as unknown[];
  const socket = new WebSocket(jsonText(target, 'webSocketDebuggerUrl') ?? '');
  try {
    return await new Promise((resolve, reject) => {
      socket.addEventListener('error', () => reject(new Error('the inspector of the service is away')));
      socket.addEventListener('open', () => {
        socket.send(JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' }));
        // One that was under way keeps what has died since it began.
        socket.send(JSON.stringify({ id: 2, method: 'HeapProfiler.collectGarbage' }));
        socket.send(JSON.stringify({ id: 3, method: 'Runtime.getHeapUsage' }));
      });
      socket.addEventListener('message', ({ data }) => {
        const used = jsonNumber(parseJson(String(data)), 'result', 'usedSize');
        if (used !== null) {
          resolve(used);
        }
      });
    });
  } finally {
    socket.close();
  }
}
