const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/;

/** The UUID that a client means, as PostgreSQL writes it; dashes are optional, null for anything else. */
export function parseHexId(text: string): string | null {
  const lower = text.toLowerCase();
  return UUID.test(lower)
    ? lower.replaceAll('-', '').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
    : null;
}

/** A UUID the way clients see ids of conversations and start tasks: 32 hexadecimal digits. */
export function toHexId(uuid: string): string {
  return uuid.replaceAll('-', '');
}
