import { MASK } from '../../common/secret-mask.js';

const SECRET_MEMBER =
  /^(api_key|aws_access_key_id|aws_secret_access_key|auth|authorization|password|token|secret)$/i;
/** Every value in these is a secret; their names are shown. */
const SECRET_MAP = /^(env|acp_env|headers|extra_headers|secrets|litellm_extra_body)$/i;

/** An agent's specification with its secrets replaced, safe to store and to show. */
export function redactAgent(agent: Record<string, unknown>): Record<string, unknown> {
  return redactMembers(agent, false);
}

function redactMembers(value: object, all: boolean): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [
      key,
      redact(member, all || SECRET_MAP.test(key) || (typeof member === 'string' && SECRET_MEMBER.test(key))),
    ]),
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
