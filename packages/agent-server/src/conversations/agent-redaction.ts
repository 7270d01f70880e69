import { isJsonObject, type JsonObject } from '@slipway/common/json-merge.js';
import { MASK } from '@slipway/common/secret-mask.js';

const SECRET_MEMBER =
  /^(api_key|aws_access_key_id|aws_secret_access_key|auth|authorization|password|token|secret)$/i;
/** Every value in these members is a secret; their names are shown. */
const SECRET_MAP = /^(env|acp_env|headers|extra_headers|secrets|litellm_extra_body)$/i;

/** Members of a tool server's authentication that are no secret. */
const SHOWN_OF_AUTH = new Set(['strategy', 'username', 'header_name']);

/** An agent's specification with its secrets replaced, safe to store and to show. */
export function redactAgent(agent: Record<string, unknown>): Record<string, unknown> {
  return redactMembers(agent, false);
}

function redactMembers(value: object, all: boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      key === 'auth' && isJsonObject(member)
        ? redactAuth(member)
        : redact(
            member,
            all || SECRET_MAP.test(key) || (typeof member === 'string' && SECRET_MEMBER.test(key)),
          ),
    ]),
  );
}

function redactAuth(auth: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(auth).map(([key, member]) => [key, redact(member, !SHOWN_OF_AUTH.has(key))]),
  );
}

function redact(value: unknown, all: boolean): unknown {
  if (typeof value === 'string') {
    return all ? MASK : maskUserInfo(value);
  }
  if (Array.isArray(value)) {
    return value.map((item) => redact(item, all));
  }
  return typeof value === 'object' && value !== null ? redactMembers(value, all) : value;
}

function maskUserInfo(text: string): string {
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)[^/?#@]+@/i, `$1${MASK}@`);
}
