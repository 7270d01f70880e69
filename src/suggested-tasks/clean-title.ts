const MOST_CHARACTERS = 256;

/** A title as given, without control characters, at most 256 characters (never half of a surrogate pair). */
export function cleanTitle(title: string): string {
  const clean = title.replace(/\p{Cc}/gu, '');
  return clean.length <= MOST_CHARACTERS ? clean : Array.from(clean).slice(0, MOST_CHARACTERS).join('');
}
