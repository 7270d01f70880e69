import { isJsonObject, type JsonObject, jsonList } from '@slipway/common/json-access.js';

const MARK = { cache_control: { type: 'ephemeral' } };
const MARKED_TURNS = 2;

/**
 * Claude's server caches up to such marks only, whatever gateway is before it: they stand at the system text, the last
 * tool and the last two messages that are a user's or a tool's result. It takes four at most.
 */
export function withCacheMarks(body: JsonObject): JsonObject {
  const messages = jsonList(body, 'messages');
  const tools = jsonList(body, 'tools');
  const roles = messages.map((message) => (isJsonObject(message) ? message['role'] : null));
  const turns = [...roles.keys()].filter((index) => roles[index] === 'user' || roles[index] === 'tool');
  const marked = new Set([roles.indexOf('system'), ...turns.slice(-MARKED_TURNS)]);
  return {
    ...body,
    messages: messages.map((message, index) => (marked.has(index) ? withMark(message) : message)),
    ...(tools.length > 0 && {
      tools: tools.map((tool, index) =>
        index === tools.length - 1 && isJsonObject(tool) ? { ...tool, ...MARK } : tool,
      ),
    }),
  };
}

function withMark(message: unknown): unknown {
  if (!isJsonObject(message)) {
    return message;
  }
  const { content } = message;
  const parts: unknown[] = Array.isArray(content) ? content : [{ type: 'text', text: content }];
  const last = parts.at(-1);
  return isJsonObject(last) && (Array.isArray(content) || typeof content === 'string')
    ? { ...message, content: [...parts.slice(0, -1), { ...last, ...MARK }] }
    : message;
}
