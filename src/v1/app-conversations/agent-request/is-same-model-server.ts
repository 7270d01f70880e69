/**
 * Whether two values of `llm_base_url` name the same server, so that a key for one may be sent to the other. Blank or
 * null is the provider's own address.
 */
export function isSameModelServer(one: string | null, other: string | null): boolean {
  return originOf(one) === originOf(other);
}

function originOf(address: string | null): string {
  const text = address?.trim() ?? '';
  return URL.canParse(text) ? new URL(text).origin : text;
}
