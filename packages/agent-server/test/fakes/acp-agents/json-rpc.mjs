import { createInterface } from 'node:readline';

/** The errors of JSON-RPC 2.0 (section 5.1) and of the Agent Client Protocol that a scripted agent needs. */
const INVALID_PARAMS = -32_602;
const METHOD_NOT_FOUND = -32_601;
const INTERNAL_ERROR = -32_603;
const AUTH_REQUIRED = -32_000;
const RESOURCE_NOT_FOUND = -32_002;

/** What a handler throws to answer with an error. */
export class RpcError extends Error {
  constructor(code, message, data) {
    super(message);
    this.code = code;
    this.data = data;
  }

  static authRequired() {
    return new RpcError(AUTH_REQUIRED, 'Authentication required');
  }

  static resourceNotFound(uri) {
    return new RpcError(RESOURCE_NOT_FOUND, 'Resource not found', { uri });
  }

  static invalidParams(message) {
    return new RpcError(INVALID_PARAMS, message);
  }
}

/**
 * Speaks JSON-RPC 2.0 over standard input and output, a message per line. Written out here, so that an agent starts in a
 * sixth of the time that the protocol's library takes, and so that our client is not tested against the code it is made of.
 *
 * @param handlers by method: `(params) => result`, for requests and notifications alike
 * @returns how the agent calls its client
 */
export function serveAgent(handlers) {
  const pending = new Map();
  let lastId = 0;

  async function answer({ id, method, params }) {
    try {
      if (!Object.hasOwn(handlers, method)) {
        throw new RpcError(METHOD_NOT_FOUND, `no method ${method}`);
      }
      const result = await handlers[method](params);
      if (id !== undefined) {
        send({ id, result });
      }
    } catch (error) {
      const { code = INTERNAL_ERROR, message, data } = error;
      send({ id: id ?? null, error: { code, message, data } });
    }
  }

  createInterface({ input: process.stdin }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.method !== undefined) {
      void answer(message);
      return;
    }
    const { resolve, reject } = pending.get(message.id);
    pending.delete(message.id);
    if (message.error === undefined) {
      resolve(message.result);
    } else {
      reject(new RpcError(message.error.code, message.error.message, message.error.data));
    }
  });

  return {
    /** Resolves when the message is on its way: an agent that floods its client waits for it. */
    notify: async (method, params) => {
      if (!send({ method, params })) {
        await new Promise((resolve) => process.stdout.once('drain', resolve));
      }
    },
    /** Rejects with what the client answers instead of a result. */
    request: async (method, params) =>
      await new Promise((resolve, reject) => {
        lastId += 1;
        pending.set(lastId, { resolve, reject });
        send({ id: lastId, method, params });
      }),
  };
}

/** @returns false when the pipe is full */
function send(message) {
  return process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
